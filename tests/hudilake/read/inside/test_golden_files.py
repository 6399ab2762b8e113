"""Files of Hudi Spark 1.2.0, with parquet-mr's statistics and page index: any value that is there is found."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from hudilake.format.definition.schema import META_FIELDS
from hudilake.format.files.pages.chunks import ChunkedFile
from hudilake.read import And, Eq, Filter, Ge, IsNull, Le, Ne, TableReader
from hudilake.read.inside.tally import ReadTally
from hudilake.storage import open_storage
from tests.hudilake.golden_kinds import extracted

KINDS = ["mor_zorder", "mor_bloom"]


def shown(reader: TableReader, condition: Filter | None, tally: ReadTally | None = None) -> list[str]:
    """The rows, by their sequence numbers."""
    plan = reader.plan(condition=condition, columns=["_hoodie_commit_seqno"])
    return sorted(value for batch in reader.batches(plan, tally) for value in batch.column(0).to_pylist())


@pytest.mark.full
@pytest.mark.parametrize("kind", KINDS)
def test_every_value_is_found(tmp_path: Path, kind: str) -> None:
    reader, tally = TableReader.open(str(extracted(kind, tmp_path)), use_index=False), ReadTally()
    rows = [row for batch in reader.batches(reader.plan()) for row in batch.to_pylist()]
    assert rows
    for name in reader.schema.names:
        if name in META_FIELDS or pa.types.is_nested(reader.schema.field(name).type):
            continue
        held = {row[name] for row in rows}
        assert shown(reader, IsNull(name)) == sorted(r["_hoodie_commit_seqno"] for r in rows if r[name] is None)
        for value in sorted(v for v in held if v is not None)[:: max(1, len(held) // 3)]:
            expected = sorted(r["_hoodie_commit_seqno"] for r in rows if r[name] == value)
            assert shown(reader, And((Ge(name, value), Le(name, value))), tally) == shown(reader, Eq(name, value))
            assert shown(reader, Eq(name, value), tally) == expected
            others = sorted(r["_hoodie_commit_seqno"] for r in rows if r[name] is not None and r[name] != value)
            assert shown(reader, Ne(name, value), tally) == others
    assert 0 < tally.row_groups < tally.of_row_groups


def test_their_files_have_bounds_and_a_page_index(tmp_path: Path) -> None:
    path = extracted("mor_zorder", tmp_path)
    found = [file for file in path.rglob("*.parquet") if ".hoodie" not in file.parts]
    assert found
    for one in found:
        file = ChunkedFile(open_storage(str(one.parent)), one.name, one.stat().st_size)
        assert file.can_pick_pages(file.flat)
        for name in file.flat:
            ranges = file.page_ranges(0, name)
            assert ranges is not None
            known = [item for item in ranges if item is not None]
            assert sum(item.value_count for item in known) in (0, file.group_rows[0])
