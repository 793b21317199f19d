"""Submission: what callers send is validated, built into rows and stored. Start with submission.py (jobs) or
commands.py (changes)."""
