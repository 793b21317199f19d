"""`python -m duetime`: the command line, where the script is not on the path or another Python than its own
is wanted."""

from __future__ import annotations

from duetime.cli import main

if __name__ == "__main__":
    main(name="python -m duetime")
