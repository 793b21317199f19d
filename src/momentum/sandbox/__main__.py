"""The command `python -m momentum.sandbox`."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from aiohttp import web

from momentum.sandbox.application import make_application


def main() -> None:
    parser = argparse.ArgumentParser(prog="momentum.sandbox", description="A local LinkedIn.")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=8090)
    parser.add_argument("--data", type=Path, required=True, help="folder of its database and files")
    options = parser.parse_args()

    def announce(*_: object) -> None:
        sys.stdout.write(f"LinkedIn sandbox ready on http://{options.host}:{options.port}\n")
        sys.stdout.flush()

    application = make_application(options.data)
    web.run_app(
        application,
        host=options.host,
        port=options.port,
        print=announce,
        access_log=None,
        shutdown_timeout=0.5,  # a scripted timeout may hold a request for an hour
    )


if __name__ == "__main__":
    main()
