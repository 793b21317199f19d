"""Bare loops on the same stores and timers: what no scheduler on them could exceed."""
