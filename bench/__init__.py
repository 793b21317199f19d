"""How fast Duetime is: every workload next to a bare loop on the same store, in one run. `python -m bench
--help`."""
