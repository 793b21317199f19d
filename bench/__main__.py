"""`python -m bench`."""

from __future__ import annotations

import sys

from bench.command import main

sys.exit(main())
