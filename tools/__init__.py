"""What the Makefile and the build run; no part of the package."""
