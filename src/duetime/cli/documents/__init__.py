"""Schedules in files: reading, planning, applying and writing them."""
