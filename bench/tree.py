"""What a process and its children hold and spend: memory at one time, processor time so far."""

from __future__ import annotations

from dataclasses import dataclass

import psutil  # type: ignore[import-untyped]


@dataclass
class Memory:
    """The most memory of a process tree at one time, in bytes: resident, and with shared pages counted once.

    While a JVM starts a program, all of its pages count twice for a moment. So the second number is the one to compare.
    """

    rss: int = 0
    pss: int = 0

    def sample(self, root: psutil.Process, *, shared: bool) -> None:
        """Measure the tree now."""
        rss = pss = 0
        for process in processes(root):
            try:
                rss += process.memory_info().rss
                pss += getattr(process.memory_full_info(), "pss", 0) if shared else 0
            except psutil.Error:  # it has just ended
                continue
        self.rss, self.pss = max(self.rss, rss), max(self.pss, pss)


def processes(root: psutil.Process) -> list[psutil.Process]:
    """The process and all below it that run; none if it has ended."""
    try:
        return [root, *root.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def processor_s() -> float:
    """Processor seconds of this process and all below it so far, those of its children that have ended included."""
    spent = 0.0
    for process in processes(psutil.Process()):
        try:
            times = process.cpu_times()
        except psutil.Error:  # it has just ended: its parent counts it from now on
            continue
        spent += times.user + times.system + times.children_user + times.children_system
    return spent
