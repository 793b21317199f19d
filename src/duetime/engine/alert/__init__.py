"""Alerts: the leader looks at the ledger, decides what is wrong, and submits notices as jobs."""
