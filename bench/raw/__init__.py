"""Bare loops on the same stores and timers: the ceiling of any scheduler on them."""
