#!lua flags=no-writes
-- ARGV: kind \0 tenant \0 key. Returns its row: >i8 version, i8 expires_at (-1: never), value.
local row = call('HGET', RECORDS, ARGV[1])
return row and is_current(row, now_micros()) and row
