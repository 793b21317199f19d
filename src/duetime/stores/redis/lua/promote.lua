#!lua flags=allow-oom
-- Make jobs claimable that wait for a permit. ARGV: permit, number, ... Returns their lanes.
local lanes = {}
for i = 1, #ARGV, 2 do
    for _, lane in ipairs(promote(ARGV[i], tonumber(ARGV[i + 1]))) do lanes[#lanes + 1] = lane end
end
return lanes
