#!lua
-- ARGV: 'node' or 'record', a number that was given already. The next is higher.
local counter = ARGV[1] == 'node' and NODE_NUMBER or RECORD_VERSION
if tonumber(call('GET', counter) or 0) < tonumber(ARGV[2]) then call('SET', counter, ARGV[2]) end
return 1
