#!lua
return write_record(ARGV)
