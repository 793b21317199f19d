"""`duetime`, with a wall clock that differs from the machine's by the seconds in a file: the file can change
while the process runs, as a clock that is corrected. The monotonic clock is right.

python -m tests.alerts.skewed_node FILE serve ...
"""

from __future__ import annotations

import sys
import time
from pathlib import Path

_offset = Path(sys.argv.pop(1))
_real = time.time_ns


def _skewed() -> int:
    return _real() + int(float(_offset.read_text()) * 1e9)


if __name__ == "__main__":
    time.time_ns = _skewed
    from duetime.cli import main

    main()
