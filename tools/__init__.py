"""Programs of the Makefile and of the build; not part of the package."""
