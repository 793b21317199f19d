#!lua
-- ARGV: how many the log keeps, then events. An entry is >i8 when, event. Returns the number of the last.
local now, at = pack('>i8', now_micros()), 2
while at <= #ARGV do
    local entries, last = {}, math.min(at + MANY - 1, #ARGV)
    for place = at, last do entries[#entries + 1] = now .. ARGV[place] end
    call('RPUSH', EVENTS, unpack(entries))
    at = last + 1
end
call('LTRIM', EVENTS, -ARGV[1], -1)
return call('INCRBY', EVENT_NUMBER, #ARGV - 1)
