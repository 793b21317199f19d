"""One file per command of `duetime`, named like it. It is imported when its command is used, and holds
`commands`."""
