"""Measures the decoder alone, in events per second of its own processor time on one core, for each wire format.

Run: ``python -m bench.decode [--events 60000] [--rounds 5] [--only canal,maxwell] [--results FILE]``. The event is the
project's reference event, about 510 bytes in the plain form (``bench/decode_messages.py``). Every format has the same
rows, a message each. In those of Canal and Maxwell, which say what an event has changed, half are updates of two
columns; an entry of HBase's WAL has four cells. The formats are measured in turns.
"""

from __future__ import annotations

import argparse
import gc
import json
import statistics
import time
from pathlib import Path

from bench.decode_messages import FORMATS, SOURCE, TYPES, events
from binlake.decode.changes import RawRecords
from binlake.decode.formats.reader import decode
from binlake.decode.options import DecodeOptions
from binlake.decode.schemas.schemas import DeclaredSchemas, declared_table

_SCHEMAS = DeclaredSchemas({SOURCE: declared_table(TYPES, ["id"])})
_OFFSETS = "__offset"


def decoded_events(records: RawRecords, options: DecodeOptions) -> int:
    """The messages that became rows."""
    batches = decode(records, _SCHEMAS, options).changes
    return len({offset for batch in batches for offset in batch.rows[_OFFSETS].to_pylist()})


def main() -> None:
    """Print one line for each format."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--events", type=int, default=60_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default=",".join(FORMATS))
    parser.add_argument("--results", type=Path)
    given = parser.parse_args()
    made = {form: events(form, given.events) for form in given.only.split(",")}
    rates: dict[str, list[float]] = {form: [] for form in made}
    for form, (records, options) in made.items():
        if decoded_events(records, options) != given.events:
            raise SystemExit(f"{form}: {decode(records, _SCHEMAS, options).quarantined[:1]}")
    for _ in range(given.rounds):
        for form, (records, options) in made.items():
            gc.collect()
            start = time.process_time()
            decode(records, _SCHEMAS, options)
            rates[form].append(given.events / (time.process_time() - start))
    fastest = statistics.median(next(iter(rates.values())))
    print("format     bytes/event   events/CPU s        (least..greatest)   MB/s  of the first")
    results = {}
    for form, each in rates.items():
        size = sum(len(value or b"") for value in made[form][0].values) / given.events
        median = statistics.median(each)
        results[form] = {"bytes": round(size), "median": round(median), "rates": [round(rate) for rate in each]}
        spread = f"({min(each):,.0f}..{max(each):,.0f})"
        print(
            f"{form:10} {size:11.0f} {median:14,.0f} {spread:>24} {median * size / 1e6:6.0f} {median / fastest:13.2f}"
        )
    if given.results:
        given.results.write_text(json.dumps({"events": given.events, "formats": results}, indent=1) + "\n")


if __name__ == "__main__":
    main()
