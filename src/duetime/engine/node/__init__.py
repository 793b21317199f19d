"""The node: one process in the fleet, its session, loops, heartbeat and clock."""
