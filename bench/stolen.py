"""Processor time that the host took from this machine during a measurement."""

from __future__ import annotations

import psutil

WORTH_TELLING = 0.02


class StolenTime:
    """The share of processor time stolen since it was made; zero if the system does not report it."""

    def __init__(self) -> None:
        self._began = psutil.cpu_times()

    def share(self) -> float:
        began, now = self._began, psutil.cpu_times()
        passed = sum(now) - sum(began)
        return (getattr(now, "steal", 0.0) - getattr(began, "steal", 0.0)) / passed if passed > 0 else 0.0

    def remark(self) -> str:
        share = self.share()
        return f"host took {share:.0%}" if share >= WORTH_TELLING else ""
