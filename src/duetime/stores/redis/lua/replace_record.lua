#!lua flags=allow-oom
-- Or delete it. Also while memory is full: a leader that can be elected frees it.
return write_record(ARGV)
