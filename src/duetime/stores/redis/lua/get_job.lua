#!lua flags=allow-oom
-- One job. ARGV: id, announce. Returns what `read_job` does, or nothing.
local job = read_job(ARGV[1])
if job and job[2] and ARGV[2] == '1' then call('SADD', ANNOUNCED, ARGV[1]) end
return job
