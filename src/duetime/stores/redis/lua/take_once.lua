#!lua
-- Take a marker of a running job, once for all its attempts. ARGV: id, attempt, marker, nonce.
local run = call('HGET', RUNNING, ARGV[1])
if not run or unpack_struct('>I4', run) ~= tonumber(ARGV[2]) then return 'refused' end
local markers = markers_key(ARGV[1])
if call('HSETNX', markers, ARGV[3], ARGV[4]) == 1 then return 'taken' end
return call('HGET', markers, ARGV[3]) == ARGV[4] and 'taken' or 'known'
