"""Pure rules and values: what is due next, what an outcome leads to. No clock, no I/O, no third-party
driver."""
