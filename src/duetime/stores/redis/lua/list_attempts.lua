#!lua flags=allow-oom
-- Attempts of a job that did not succeed, oldest first. ARGV: id.
return call('LRANGE', attempts_key(ARGV[1]), 0, -1)
