#!lua
-- Set a queue. ARGV: name, settings, row of a restricted queue or '', hint.
call('HSET', QUEUES, ARGV[1], ARGV[2])
if ARGV[3] == '' then
    call('HDEL', RESTRICTED, ARGV[1])
else
    call('HSET', RESTRICTED, ARGV[1], ARGV[3])
end
call('PUBLISH', CHANNEL, ARGV[4])
return 1
