"""``python -m tests.programs.first_hour``: the time of each line of the pages, and of all up to the first rows."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests.programs.first_hour.follow import FirstHour, PageFailed, reader, sources


def follow(say: bool = True, *, whole: bool = True) -> FirstHour:
    """Follow the pages; the times. Raises PageFailed at the first line that does not do what its page says.

    ``whole``: go on after the first rows, with the README's quick start, the life of tables and the way without Kafka.
    """
    # a short path: sockets do not take a long one
    with tempfile.TemporaryDirectory(prefix="fh", ignore_cleanup_errors=True) as name:
        place = Path(name)
        with sources(place) as given, reader(place) as shell:
            hour = FirstHour(shell, given, lambda line: print(line, flush=True) if say else None)
            hour.first_table()
            rows = sum(one.seconds for one in hour.done)
            typed = sum(bool(one.step.language) for one in hour.done)
            print(f"{rows:7.1f} s  from nothing to the first rows; {typed} lines typed", flush=True)
            if whole:
                hour.quick_start()
                hour.table_life()
                hour.without_kafka()
    return hour


def main() -> int:
    """Follow the pages; the exit code."""
    try:
        follow()
    except (PageFailed, TimeoutError) as failed:
        print(f"failed: {failed}", flush=True)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
