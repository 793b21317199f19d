"""`python -m momentum` is the command `momentum`."""

from momentum.cli import main

main()
