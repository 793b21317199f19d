"""For those who test with Duetime, and for those who write a store. Importing this needs no test tools; `conformance` does."""
