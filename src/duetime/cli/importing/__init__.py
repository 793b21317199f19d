"""Schedules of other systems as files for `duetime apply`."""
