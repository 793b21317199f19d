"""The invariants of the simulation. They keep their own records and check them after every transaction of the
store."""
