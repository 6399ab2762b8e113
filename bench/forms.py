"""Messages a second and core that the decoder takes of each form of a value, and the ratio to the format's fastest.

Run: ``python -m bench.forms [--messages 20000] [--rounds 5] [--formats plain,schema,...] [--only text]``. A message
holds a row of ``id`` and four columns of the type. Times are those of the process, so that others on the machine count
little. The fastest form is looked for among those that have a value in every column.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

from bench.form_messages import FORMATS, Messages, cases, messages

#: The most time that a form may take, as a multiple of the fastest form of its format.
MOST = 3.0


@dataclass
class Rates:
    """Messages per second of the process's own time, one value for each round."""

    messages: Messages
    rates: list[float] = field(default_factory=list)

    @property
    def median(self) -> float:
        """The median of the rounds."""
        return statistics.median(self.rates)

    def measure(self) -> None:
        """Measure one more round."""
        gc.collect()
        start = time.process_time()
        rows = self.messages.decode()
        self.rates.append(rows / (time.process_time() - start))
        if rows != len(self.messages.records):
            raise SystemExit(f"{self.messages.case.name}: {rows} of {len(self.messages.records)} rows")


def table(form: str, done: list[Rates]) -> Iterator[str]:
    """The lines of a format's table."""
    fastest = max(one.median for one in done if one.messages.case.whole or len(done) == 1)
    yield f"\n{form:45} {'messages/s':>10} {'least':>9} {'greatest':>9} {'ratio':>6}"
    for one in done:
        ratio = fastest / one.median
        note = "  <--" if ratio > MOST else ""
        rates = f"{one.median:10,.0f} {min(one.rates):9,.0f} {max(one.rates):9,.0f}"
        yield f"{one.messages.case.name:45} {rates} {ratio:6.1f}{note}"


def main() -> None:
    """Measure the forms in turns, and print one table for each format."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--formats", default=",".join(FORMATS))
    parser.add_argument("--only", default="", help="a part of the name of the forms")
    given = parser.parse_args()
    for form in given.formats.split(","):
        done = [Rates(messages(form, case, given.messages)) for case in cases(form) if given.only in case.name]
        for one in done:
            one.messages.decode()
        for _ in range(given.rounds):
            for one in done:
                one.measure()
        for line in table(form, done):
            print(line, flush=True)


if __name__ == "__main__":
    main()
