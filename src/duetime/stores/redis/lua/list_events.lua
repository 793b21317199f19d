#!lua flags=no-writes
-- ARGV: after which number, limit. Returns the number of the last event, the number of the first one found, and those found.
local last, limit = tonumber(call('GET', EVENT_NUMBER) or 0), tonumber(ARGV[2])
local first = last - call('LLEN', EVENTS) + 1
local start = math.max(0, ARGV[1] + 1 - first)
return {last, first + start, limit > 0 and call('LRANGE', EVENTS, start, start + limit - 1) or {}}
