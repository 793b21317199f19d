"""Planning: schedules become jobs, and the leases that share this work among planners."""
