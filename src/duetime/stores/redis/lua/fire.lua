#!lua
-- Turn fires into jobs. ARGV, of each firing: id of the schedule, segment, version, cursor, next_fire_time, latest fire_time of its fires
-- (these >i8), runs, number of fires, and of each fire: id, row without counts, why it is skipped or ''.
-- Returns the numbers of the firings whose schedule still had that version and cursor.
local now, at, applied, number = now_micros(), 1, {}, 0
while at <= #ARGV do
    number = number + 1
    local id, segment, fires = ARGV[at], ARGV[at + 1], tonumber(ARGV[at + 7])
    local row = call('HGET', SCHEDULES, id)
    local one = row and read_schedule(row)
    if one and one.paused == 0 and one.version == tonumber(ARGV[at + 2]) and one.cursor == ARGV[at + 3] then
        one.cursor, one.last, one.runs = ARGV[at + 4], later(one.last, ARGV[at + 5]), tonumber(ARGV[at + 6])
        call('HSET', SCHEDULES, id, schedule_row(one))
        move_cursor(id, segment, one)
        for place = at + 8, at + 5 + 3 * fires, 3 do
            local job_id, reason = ARGV[place], ARGV[place + 2]
            if call('HEXISTS', JOBS, job_id) == 0 and call('HEXISTS', PAST, job_id) == 0 then
                local stored = new_row(now, ARGV[place + 1])
                if reason == '' then
                    store_job(job_id, stored, false)
                else
                    store_skipped(job_id, stored, now, reason)
                end
            end
        end
        applied[#applied + 1] = number
    end
    at = at + 8 + 3 * fires
end
return applied
