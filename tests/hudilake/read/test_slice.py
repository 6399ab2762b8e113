"""Reading merged rows: Hudi's own table, the rules of the merge, damaged files."""

from __future__ import annotations

import io
import json
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hudilake.errors import CorruptDataError, UnsupportedError
from hudilake.format.definition.schema import avro_schema
from hudilake.format.files.base_file import encode_base_file, read_base_file
from hudilake.format.files.data_block import decode_data_block
from hudilake.format.files.delete_block import encode_deletes
from hudilake.format.files.file_group_write import WriteContext, encode_log_file, write_file_group
from hudilake.format.files.log_file import BlockType, Header, encode_block, encode_delete_block, iter_blocks
from hudilake.format.files.parquet_file import footer_of
from hudilake.format.files.view import file_slices
from hudilake.read.slice import read_file_slice, read_table
from hudilake.storage import open_storage
from hudilake.table.table import HudiTable
from tests.hudilake.lake import (
    SCHEMA,
    Change,
    Model,
    Row,
    check,
    commit,
    data_files,
    deletes,
    groups,
    new_table,
    ours,
    rs,
    upserts,
)
from tests.hudilake.services.compaction import compact
from tests.hypothesis_profile import scaled
from tests.paths import GOLDEN

GOLDEN_TABLE = open_storage((GOLDEN / "tbl_hudi120").as_uri())


def _as_text(value: Any) -> Any:  # noqa: ANN401 - a cell
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, datetime):
        return f"{value:%Y-%m-%d %H:%M:%S.%f}"
    return str(value) if isinstance(value, Decimal | date) else value


def test_the_golden_table() -> None:
    expected = json.loads((GOLDEN / "tbl_hudi120_expected.json").read_text())["rows"]
    names = list(expected[0])
    rows = [r for table in read_table(GOLDEN_TABLE, names) for r in table.to_pylist()]
    assert [{k: _as_text(v) for k, v in r.items()} for r in sorted(rows, key=lambda r: r["id"])] == sorted(
        expected, key=lambda r: r["id"]
    )
    assert len(rows) == 39


def test_columns_are_given_as_asked() -> None:
    table = HudiTable.open(GOLDEN_TABLE)
    item = file_slices(GOLDEN_TABLE, table.timeline)[0]
    assert read_file_slice(table, item, ["name"]).column_names == ["name"]
    assert read_file_slice(table, item, ["ts", "_hoodie_commit_time", "id"]).column_names == [
        "ts",
        "_hoodie_commit_time",
        "id",
    ]
    assert read_file_slice(table, item).column_names[:6] == [
        "_hoodie_commit_time",
        "_hoodie_commit_seqno",
        "_hoodie_record_key",
        "_hoodie_partition_path",
        "_hoodie_file_name",
        "id",
    ]
    with pytest.raises(UnsupportedError, match="nope"):
        read_file_slice(table, item, ["nope"])


# -- random histories, with compactions


KEYS = st.dictionaries(st.integers(0, 7), st.tuples(st.integers(0, 5), st.booleans()), min_size=1, max_size=8)


@settings(max_examples=scaled(25), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(history=st.lists(st.one_of(st.none(), KEYS), min_size=1, max_size=7))
def test_any_history_with_compactions(
    tmp_path_factory: pytest.TempPathFactory, history: list[dict[int, tuple[int, bool]] | None]
) -> None:
    """A compaction forgets the ordering values of deletes: the model does so too."""
    path = tmp_path_factory.mktemp("lake")
    table, model = new_table(path), Model()
    for number, batch in enumerate(history):
        if batch is None:
            compact(table)
            model.state = {key: change for key, change in model.state.items() if change.name is not None}
            continue
        changes = [Change(key, order, f"{number}" if alive else None) for key, (order, alive) in batch.items()]
        commit(table, changes)
        model.apply(changes)
    check(path, model)


def test_a_restated_tombstone_outlives_a_compaction(tmp_path: Path) -> None:
    """Case 34: the delete is stated again in the new slice, so a late insert stays out and a newer one comes in."""
    table = new_table(tmp_path, buckets=1)
    commit(table, upserts([1, 2, 3], 100))
    commit(table, deletes([1, 2, 3], 300))
    compact(table)
    commit(table, deletes([1, 2], 300))
    commit(table, upserts([1], 200, "late") + upserts([2], 400, "new") + upserts([3], 200, "back"))
    assert [(r["id"], r["name"]) for r in ours(tmp_path)] == [(2, "new2"), (3, "back3")]
    assert rs(tmp_path) == ours(tmp_path)


# -- what other writers leave in a log


def replace_log(path: Path, blocks: list[bytes]) -> str:
    """Put other blocks into the newest log file of a table with one bucket; returns its path."""
    newest = max(data_files(path), key=lambda f: f.partition("_")[2])
    (path / newest).write_bytes(b"".join(blocks))
    return newest


def foreign(path: Path) -> tuple[HudiTable, WriteContext]:
    """A table with rows 1..5 at 100 and a second commit whose log file a test fills; its context."""
    table = new_table(path, buckets=1)
    commit(table, upserts(range(1, 6), 100))
    instant = commit(table, upserts([9], 100))
    return table, table.write_context(instant)


def data_block(table: HudiTable, context: WriteContext, changes: list[Change]) -> bytes:
    """Changes of one file group as its blocks."""
    (group,) = groups(table, changes)
    return encode_log_file(context, group)


def delete_block(context: WriteContext, keys: list[str], ordering: list[int] | None) -> bytes:
    """A delete block; without ordering values it deletes unconditionally."""
    values = None if ordering is None else pa.array(ordering, pa.int64())
    return encode_delete_block(
        context.instant, context.avro_schema_json, encode_deletes(pa.array(keys), values, "day=d1")
    )


def ids(path: Path) -> list[int]:
    """Ids in our reader, after hudi-rs agreed on all rows."""
    assert ours(path) == rs(path)
    return [r["id"] for r in ours(path)]


def test_deletes_by_ordering_value(tmp_path: Path) -> None:
    _, context = foreign(tmp_path)
    replace_log(tmp_path, [delete_block(context, ["1", "2", "3", "4"], [99, 100, 101, 0])])
    assert ids(tmp_path) == [1, 4, 5]


def test_deletes_without_an_ordering_value_always_delete(tmp_path: Path) -> None:
    _, context = foreign(tmp_path)
    replace_log(tmp_path, [delete_block(context, ["1", "2"], None)])
    assert ids(tmp_path) == [3, 4, 5]


@pytest.mark.parametrize("compacted", [False, True])
def test_what_comes_after_an_unconditional_delete_counts_again(tmp_path: Path, compacted: bool) -> None:
    """Rows of the same log, whatever their order; a base file's row is only beaten by a greater or equal order."""
    table = new_table(tmp_path, buckets=1)
    commit(table, upserts([1, 2], 100))
    if compacted:
        compact(table)
    context = table.write_context(commit(table, upserts([9], 100)))
    removal = delete_block(context, ["1", "2"], None)
    replace_log(tmp_path, [removal, data_block(table, context, upserts([1], 150, "new"))])
    assert [(r["id"], r["name"]) for r in ours(tmp_path)] == [(1, "new1")]
    assert rs(tmp_path) == ours(tmp_path)


def test_a_tie_inside_a_log_goes_to_the_later_block(tmp_path: Path) -> None:
    table, context = foreign(tmp_path)
    blocks = [
        data_block(table, context, upserts([1, 2], 100, "first")),
        data_block(table, context, upserts([1, 2], 100, "second")),
        delete_block(context, ["2"], [100]),
        data_block(table, context, upserts([3], 100, "x")),
        delete_block(context, ["3"], [100]),
        data_block(table, context, upserts([3], 100, "again")),
    ]
    replace_log(tmp_path, blocks)
    assert [(r["id"], r["name"]) for r in ours(tmp_path)][:2] == [(1, "second1"), (3, "again3")]
    assert rs(tmp_path) == ours(tmp_path)


def test_blocks_of_instants_that_are_not_completed_are_passed_over(tmp_path: Path) -> None:
    table, context = foreign(tmp_path)
    pending = table.begin()
    late = WriteContext(**{**context.__dict__, "instant": pending})
    block = data_block(table, context, upserts([8], 100))
    replace_log(
        tmp_path, [block, data_block(table, late, upserts([1], 900, "ghost")), delete_block(late, ["2"], [900])]
    )
    assert ids(tmp_path) == [1, 2, 3, 4, 5, 8]
    unsigned = encode_block(BlockType.PARQUET_DATA, {int(Header.SCHEMA): "{}"}, b"anything")
    replace_log(tmp_path, [block, unsigned])
    assert [r["id"] for r in ours(tmp_path)] == [1, 2, 3, 4, 5, 8]


def test_avro_blocks(tmp_path: Path) -> None:
    """Flink's and Java's kind of data block."""
    table, context = foreign(tmp_path)
    (group,) = groups(table, upserts([1, 9], 200, "avro"))
    (block,) = iter_blocks(encode_log_file(context, group))
    schema = fastavro.parse_schema(json.loads(context.avro_schema_json))
    out = io.BytesIO()
    rows = decode_data_block(block, None, "x").to_pylist()
    out.write((3).to_bytes(4, "big") + len(rows).to_bytes(4, "big"))
    for row in rows:
        datum = io.BytesIO()
        fastavro.schemaless_writer(datum, schema, row)
        out.write(len(datum.getvalue()).to_bytes(4, "big") + datum.getvalue())
    header = {int(Header.INSTANT_TIME): context.instant, int(Header.SCHEMA): context.avro_schema_json}
    name = replace_log(tmp_path, [encode_block(BlockType.AVRO_DATA, header, out.getvalue())])
    assert ids(tmp_path) == [1, 2, 3, 4, 5, 9]
    assert ours(tmp_path)[0]["name"] == "avro1"
    replace_log(tmp_path, [encode_block(BlockType.AVRO_DATA, header, out.getvalue()[:-3])])
    with pytest.raises(CorruptDataError) as caught:
        ours(tmp_path)
    assert caught.value.where["path"] == name


@pytest.mark.parametrize(
    ("kind", "header"),
    [
        (BlockType.COMMAND, {}),
        (BlockType.HFILE_DATA, {}),
        (BlockType.PARQUET_DATA, {int(Header.COMPACTED_BLOCK_TIMES): "1,2"}),
    ],
)
def test_blocks_we_cannot_honour_are_refused(tmp_path: Path, kind: BlockType, header: dict[int, str]) -> None:
    _, context = foreign(tmp_path)
    replace_log(tmp_path, [encode_block(kind, {0: context.instant, 2: "{}", **header}, b"x")])
    with pytest.raises(UnsupportedError):
        ours(tmp_path)


# -- damage


def damaged(path: Path) -> Iterator[tuple[int, bytes]]:
    """A table whose newest log file holds two blocks, and that file cut short at many places."""
    table = new_table(path, buckets=1)
    commit(table, upserts(range(1, 6), 100))
    context = table.write_context(commit(table, upserts([9], 100)))
    whole = data_block(table, context, upserts([1, 9], 200, "new")) + delete_block(context, ["2"], [200])
    for cut in sorted({*range(0, len(whole), 97), *range(len(whole) - 40, len(whole) + 1)}):
        replace_log(path, [whole[:cut]])
        yield cut, whole


def test_a_file_cut_anywhere_never_gives_a_wrong_row(tmp_path: Path) -> None:
    """Case 8: the blocks that are whole count, the others do not, and hudi-rs says the same; whole at the end."""
    allowed = [[1, 2, 3, 4, 5], [1, 2, 3, 4, 5, 9], [1, 3, 4, 5, 9]]
    seen = []
    for cut, whole in damaged(tmp_path):
        found = ids(tmp_path)
        assert found in allowed
        seen.append(allowed.index(found))
        if cut == len(whole):
            assert found == allowed[-1]
    assert seen == sorted(seen)
    assert set(seen) == {0, 1, 2}


@pytest.mark.first(1)
@pytest.mark.parametrize("compacted", [False, True])
def test_a_flipped_bit_is_an_error_that_names_the_place_or_changes_nothing(tmp_path: Path, compacted: bool) -> None:
    """Case 9, in the log block's or the base file's Parquet. Some bytes are read by nobody."""
    table = new_table(tmp_path, buckets=1)
    commit(table, upserts(range(1, 50), 100))
    if compacted:
        compact(table)
    (name,) = [f for f in data_files(tmp_path) if f.endswith(".parquet") == compacted]
    whole = (tmp_path / name).read_bytes()
    expected = ours(tmp_path)
    outcomes = []
    for at in range(whole.index(b"PAR1"), len(whole) - 12 * (not compacted), 7):
        (tmp_path / name).write_bytes(whole[:at] + bytes([whole[at] ^ 1 << at % 8]) + whole[at + 1 :])
        outcomes.append(outcome_of_reading(tmp_path, expected))
    corrupt = f"corrupt {name} 0"
    assert set(outcomes) <= {"the same rows", corrupt, "the schema's text was hit"}
    assert outcomes.count(corrupt) > 120
    (tmp_path / name).write_bytes(whole)
    assert outcome_of_reading(tmp_path, expected) == "the same rows"


def outcome_of_reading(path: Path, expected: list[Row]) -> str:
    """What a damaged file leads to, in words."""
    try:
        return "the same rows" if ours(path) == expected else "WRONG ROWS"
    except CorruptDataError as error:
        return f"corrupt {error.where['path']} {error.where['offset']}"
    except UnsupportedError as error:
        return "the schema's text was hit" if "Avro type" in str(error) else str(error)


def test_an_empty_base_file_is_an_error(tmp_path: Path) -> None:
    """Case 10."""
    table = new_table(tmp_path, buckets=1)
    commit(table, upserts(range(1, 5), 100))
    compact(table)
    (name,) = [f for f in data_files(tmp_path) if f.endswith(".parquet")]
    (tmp_path / name).write_bytes(b"")
    with pytest.raises(CorruptDataError, match="Parquet"):
        ours(tmp_path)


def test_the_footer_of_a_base_file(tmp_path: Path) -> None:
    table = new_table(tmp_path, buckets=1)
    commit(table, upserts([10, 9], 100))
    compact(table)
    (name,) = [f for f in data_files(tmp_path) if f.endswith(".parquet")]
    footer = footer_of((tmp_path / name).read_bytes(), name)
    assert footer == {
        "parquet.avro.schema": avro_schema(SCHEMA, "t1", with_meta=True),
        "writer.model.name": "avro",
        "org.apache.spark.version": "3.5.7",
        "hoodie_min_record_key": "10",
        "hoodie_max_record_key": "9",
    }
    rows = read_base_file(table.storage, name)
    blooming = encode_base_file(rows, "{}", ("SIMPLE", "AAAA"))
    assert footer_of(blooming, "x")["org.apache.hudi.bloomfilter"] == "AAAA"
    with pytest.raises(CorruptDataError):
        footer_of(b"PAR1", "x")
    theirs = footer_of(next((GOLDEN / "tbl_hudi120").rglob("*.parquet")).read_bytes(), "x")
    assert {"hoodie_min_record_key", "hoodie_max_record_key", "org.apache.hudi.bloomfilter"} <= theirs.keys()


def test_an_empty_log_file_holds_nothing(tmp_path: Path) -> None:
    """Case 10: as in both readers; fsck names it."""
    foreign(tmp_path)
    replace_log(tmp_path, [])
    assert ids(tmp_path) == [1, 2, 3, 4, 5]


def test_reading_is_in_columns(tmp_path: Path) -> None:
    """200,000 rows in two log files merge in well under the time a loop over them would take."""
    table = new_table(tmp_path, buckets=1)
    count = 100_000
    keys = np.sort(np.arange(count).astype(str))
    (group,) = groups(table, upserts([1], 1))
    columns = {"id": pa.array(keys).cast(pa.int64()), "day": pa.repeat(pa.scalar("d1"), count)}
    context = None
    for order in (1, 2):
        rows = pa.table({"_hoodie_record_key": keys, **columns, "_binlake_order": pa.repeat(pa.scalar(order), count)})
        instant = table.begin()
        context = table.write_context(instant)
        table.commit(instant, [write_file_group(table.storage, context, replace(group, upserts=rows))])
    assert context is not None
    assert context.avro_schema_json == avro_schema(SCHEMA, "t1", with_meta=True)
    start = time.process_time()
    (merged,) = read_table(table.storage, ["id", "_binlake_order"])
    assert time.process_time() - start < 2
    assert (merged.num_rows, set(merged.column("_binlake_order").to_pylist())) == (count, {2})
