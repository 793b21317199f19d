"""The routes of version 1, one subject per file."""
