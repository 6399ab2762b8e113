"""One table's part of a batch: what the driver works out for it, and what it leaves as it was."""

from __future__ import annotations

import dataclasses
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from binlake.position.commit_record import CommitNotes
from binlake.rows.tasks.plan import TaskTableReport
from binlake.rows.upsert.route import AppliedRecords, Counts, route
from binlake.rows.upsert.target import make_target
from binlake.schema.rules.evolution import evolved
from binlake.source.offsets import NO_RANGES
from binlake.tables import lake_table
from binlake.tables.lake_table import LakeTable
from binlake.tables.table_commit import TableInput, write_and_commit
from hudilake.errors import ConfigError, UnsupportedError
from hudilake.format.timeline.instant import Instant
from hudilake.read.slice import read_table
from hudilake.table.table import HudiTable
from tests.binlake.rows.upsert.ingest import STREAM, TOPIC, Ingest, change_batch, placed, table_schema, value_columns
from tests.binlake.rows.upsert.test_route import row
from tests.model import Change, Delivered, Shape

SHAPE = Shape(("id",))


def brought(here: Ingest, ids: range, columns: pa.Schema | None = None, shape: Shape = SHAPE) -> TableInput:
    """Inserts of rows with these ids, from these offsets."""
    changes = [Delivered(Change(8 + at, 0, None, row(at)), 0, at) for at in ids]
    schema = table_schema(shape)
    target = make_target(schema, here.rules)
    routed = route(placed(change_batch(shape, changes), here.rules), AppliedRecords(), -1)
    report = TaskTableReport(schema, target, columns or value_columns(routed.parcels), {TOPIC}, routed.counts)
    return TableInput(report, NO_RANGES, routed.parcels)


def committed(here: Ingest, table_input: TableInput) -> Counts:
    """Write and commit it; its counts."""
    report = table_input.report
    table = here.lake.get_or_create(here.rules, report.target, report.columns)
    return write_and_commit(table, table_input, STREAM, 0, here.pool, here.services).counts


def test_a_table_is_evolved_once_and_begun_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where a batch brings a column; before a change of type, log files are written into base files."""
    calls: Counter[str] = Counter()

    def counting(name: str, function: Any) -> Any:  # noqa: ANN401 - any function
        def counted(*arguments: Any, **named: Any) -> Any:  # noqa: ANN401
            calls[name] += 1
            return function(*arguments, **named)

        return counted

    monkeypatch.setattr(lake_table, "evolved", counting("evolved", evolved))
    monkeypatch.setattr(HudiTable, "write_context", counting("context", HudiTable.write_context))
    monkeypatch.setattr(HudiTable, "begin", counting("begin", HudiTable.begin))
    here = Ingest.at(tmp_path, SHAPE)
    first = brought(here, range(3))
    committed(here, first)
    assert calls == Counter(evolved=1, context=1, begin=1)
    calls.clear()
    wider = first.report.columns.append(pa.field("extra", pa.int32()))
    committed(here, brought(here, range(3, 6), wider))
    assert calls == Counter(evolved=1, context=1, begin=1)
    assert "extra" in here.table.hudi.schema.names
    calls.clear()
    retyped = wider.set(wider.names.index("extra"), pa.field("extra", pa.int64()))
    committed(here, brought(here, range(6, 9), retyped))
    assert calls == Counter(evolved=2, context=2, begin=2)
    assert here.table.hudi.schema.field("extra").type == pa.int64()


@pytest.mark.parametrize("brings", [None, "extra"], ids=["known columns", "a new column"])
def test_an_instant_that_tasks_have_used_is_used_on(tmp_path: Path, brings: str | None) -> None:
    here = Ingest.at(tmp_path, SHAPE)
    first = brought(here, range(3))
    committed(here, first)
    columns = first.report.columns if brings is None else first.report.columns.append(pa.field(brings, pa.int32()))
    context = here.table.begin(here.table.hudi.schema)
    second = dataclasses.replace(brought(here, range(3, 6), columns), context=context)
    outcome = write_and_commit(here.table, second, STREAM, 0, here.pool, here.services)
    assert outcome.instant == context.instant
    assert set(here.table.hudi.schema.names) >= set(columns.names)


def test_what_a_batch_brings_stays_as_it_was(tmp_path: Path) -> None:
    """So that it can be written again when another writer has overtaken it."""
    here = Ingest.at(tmp_path, SHAPE)
    table_input = brought(here, range(3))
    assert committed(here, table_input) == Counts(read=3, applied=3)
    assert table_input.report.counts == Counts(read=3)
    with pytest.raises(dataclasses.FrozenInstanceError):
        table_input.notes = CommitNotes(replayed={})  # type: ignore[misc]


def test_a_table_refuses_before_an_instant_begins(tmp_path: Path) -> None:
    here = Ingest.at(tmp_path, SHAPE)
    first = brought(here, range(3))
    committed(here, first)
    before = instants(here)
    at = first.report.columns.names.index("flag")
    other = first.report.columns.set(at, pa.field("flag", pa.date32()))
    with pytest.raises(UnsupportedError, match="'flag' was bool and now comes as date32"):
        committed(here, brought(here, range(3, 6), other))
    assert instants(here) == before


def instants(here: Ingest) -> list[Instant]:
    """Those of the table, as they are stored."""
    timeline = LakeTable.look(here.table.storage, here.rules).hudi.timeline
    return [*timeline.completed(), *timeline.pending()]


@pytest.mark.parametrize(("key", "began"), [(("code", "id"), False), (("code", "id"), True), ((), False)])
def test_a_table_without_a_commit_gets_the_key_that_the_source_has_now(
    tmp_path: Path, key: tuple[str, ...], began: bool
) -> None:
    """Its creator died before the first commit, and the source's table got another key."""
    first, other = Ingest.at(tmp_path, SHAPE), Shape(key)
    report = brought(first, range(2)).report
    table = first.lake.get_or_create(first.rules, report.target, report.columns)
    if began:
        table.hudi.abort(table.hudi.begin())
    later = Ingest.at(tmp_path, other)
    committed(later, brought(later, range(4), shape=other))
    assert sum(map(len, read_table(later.table.storage, ["id"]))) == 4
    with pytest.raises(ConfigError, match="record_key_fields"):  # the control: the table has a commit
        committed(Ingest.at(tmp_path, SHAPE), brought(first, range(2)))
