"""How fast Duetime is: every workload beside the bare store, in one run. `python -m bench --help`."""
