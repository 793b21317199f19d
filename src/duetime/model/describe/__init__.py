"""Schedules in plain English: what a `when` means, and what clock changes do to its fires."""
