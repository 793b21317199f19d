"""The web UI in a real browser, on a real `duetime serve` with a SQLite file of its own."""
