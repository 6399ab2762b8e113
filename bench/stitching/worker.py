"""The measured process: one way of stitching over all batches. ``-m bench.stitching.worker writer place sizes``."""

from __future__ import annotations

import json
import statistics
import sys
from pathlib import Path

from bench.process import tree_bytes
from bench.spec import HEAP_MB
from bench.stitching import column
from bench.stitching.ours import Ours
from bench.stitching.peers import WRITERS, Writer
from bench.stitching.streams import Sizes, canonical, expected, numbers, wrong_rows
from bench.summary import Metrics
from hudilake.clock import monotonic_s


def measure(writer: Writer, place: Path, inputs: Path, sizes: Sizes) -> Metrics:
    """Write all batches, compact, and compare the table with the model before and after the compaction."""
    found: Metrics = {}
    writer.create()
    for part, chosen in numbers(sizes):
        before = tree_bytes(place / "lake")
        spent: list[float] = []
        for number in chosen:
            started = monotonic_s()
            writer.write(number)
            spent.append(monotonic_s() - started)
        if part == "ingest":
            found["events_per_s"] = sizes.events / sum(spent)
            found["batch_ms"] = statistics.median(spent) * 1000
            found["written_mb"] = (tree_bytes(place / "lake") - before) / 1e6
        elif part == "small":
            found["small_batch_ms"] = statistics.median(spent[1:]) * 1000
    wanted = expected(inputs, range(len(sizes.batch_sizes())))
    found["wrong_rows"] = float(wrong_rows(canonical(writer.rows()), wanted))
    print(found, flush=True)
    before, started = tree_bytes(place / "lake"), monotonic_s()
    writer.compact()
    found["compaction_s"] = monotonic_s() - started
    found["compaction_mb"] = (tree_bytes(place / "lake") - before) / 1e6
    found["wrong_rows_compacted"] = float(wrong_rows(canonical(writer.rows()), wanted))
    return found


def writer_of(name: str, place: Path, inputs: Path) -> Writer:
    """The writer of a side."""
    return Ours(place, inputs) if name == "binlake" else WRITERS[name](place, inputs, HEAP_MB)


def main() -> None:
    """Measure one side and write its numbers."""
    name, place, given = sys.argv[1], Path(sys.argv[2]), json.loads(sys.argv[3])
    place.mkdir(parents=True)
    if name.startswith("column-"):
        found = column.SIDES[name.removeprefix("column-")](column.Wide(given["rows"], place), HEAP_MB)
    else:
        inputs = place.parent / "inputs"
        writer = writer_of(name, place, inputs)
        found = measure(writer, place, inputs, Sizes(**given))
        writer.close()
    (place / "found.json").write_text(json.dumps(found))


if __name__ == "__main__":
    main()
