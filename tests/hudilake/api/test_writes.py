"""Writes through the façade: model, readers and hudi-rs agree after each commit, on every kind of table."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import hudilake
from tests.hudilake.api.tables import APPENDED, KEYED, SCHEMA, Model, assert_holds, keyed, row
from tests.selection import first


@pytest.mark.full
@pytest.mark.parametrize("kind", first(3, KEYED))
def test_random_upserts_and_deletes(kind: str, tmp_path: Path) -> None:
    table = keyed(tmp_path / "t", **KEYED[kind])
    names = tuple(dict.fromkeys((*_fields(table, "recordkey"), *_fields(table, "partition"))))
    copies = KEYED[kind].get("type") == "copy_on_write"
    model, dice = Model(names, forgets=copies), random.Random(kind)
    for step in range(8):
        rows = [row(dice.randrange(40), dice.randrange(100), dice.choice("ab")) for _ in range(dice.randrange(1, 25))]
        if step % 3 == 2:
            model.delete(rows)
            table.delete(rows)
        else:
            model.upsert(rows)
            table.upsert(rows)
        assert_holds(table, model.live())
    if not copies:
        assert table.compact() == 1
        assert_holds(table, model.live())


def _fields(table: hudilake.Table, what: str) -> list[str]:
    return [name for name in table.properties.get(f"hoodie.table.{what}.fields", "").split(",") if name]


@pytest.mark.parametrize("kind", APPENDED)
def test_appended_rows(kind: str, tmp_path: Path) -> None:
    table = hudilake.create_table(str(tmp_path / "t"), SCHEMA, partition_by="day", **APPENDED[kind])
    rows = [row(n % 7, n) for n in range(30)]
    for low in (0, 10, 20):
        table.append(rows[low : low + 10])
    assert_holds(table, rows)
    assert [commit.extra["schema"][:8] for commit in table.history()] == ['{"type":'] * 3


def test_the_newest_of_a_key_wins_in_a_write_and_across_writes(tmp_path: Path) -> None:
    table = keyed(tmp_path / "t")
    table.upsert([row(1, 5, "new"), row(1, 3, "old"), row(1, 5, "later of the two")])
    table.upsert([row(1, 4, "late")])
    assert_holds(table, [row(1, 5, "later of the two")])
    table.upsert([row(1, 5, "as new, and later")])
    assert_holds(table, [row(1, 5, "as new, and later")])


def test_a_late_row_does_not_come_back_after_its_delete(tmp_path: Path) -> None:
    table = keyed(tmp_path / "t")
    table.upsert([row(1, 5)])
    table.delete([row(1, 0)])
    table.upsert([row(1, 4, "late")])
    assert_holds(table, [])
    table.upsert([row(1, 6, "newer")])
    assert_holds(table, [row(1, 6, "newer")])


def test_a_late_row_does_not_come_back_after_a_compaction(tmp_path: Path) -> None:
    table = keyed(tmp_path / "t")
    table.upsert([row(1, 5), row(2, 5)])
    table.delete([row(1, 0)])
    assert table.compact() == 1
    table.upsert([row(1, 4, "late")])
    assert_holds(table, [row(2, 5)])
    table.upsert([row(1, 6, "newer")])
    assert_holds(table, [row(1, 6, "newer"), row(2, 5)])


@pytest.mark.parametrize("others", [[], [row(4, 5)]])
def test_what_the_first_transaction_has_deleted_stays_deleted(tmp_path: Path, others: list[dict[str, Any]]) -> None:
    """The file group is new then, with rows of other keys or without any."""
    table = keyed(tmp_path / "t", buckets=1)
    with table.transaction() as transaction:
        transaction.upsert([row(1, 5), *others])
        transaction.delete([row(1, 0)])
    table.upsert([row(1, 4, "late")])
    assert_holds(table, others)


def test_one_key_in_two_partitions_is_two_rows(tmp_path: Path) -> None:
    table = keyed(tmp_path / "t")
    table.upsert([row(1, 5, day="x"), row(1, 5, day="y")])
    table.delete([row(1, 0, day="x")])
    assert_holds(table, [row(1, 5, day="y")])


def test_deletes_by_a_condition(tmp_path: Path) -> None:
    table = keyed(tmp_path / "t")
    table.upsert([row(n, n) for n in range(20)])
    table.delete(where="id > 15")
    table.delete(where=hudilake.In("day", ("d0",)))
    assert_holds(table, [row(n, n) for n in range(16) if n % 3])
    assert table.delete(where="id = 999") is not None  # it looked, and committed that nothing changed
    assert_holds(table, [row(n, n) for n in range(16) if n % 3])


def test_deletes_of_rows_that_never_were_write_no_file(tmp_path: Path) -> None:
    table = keyed(tmp_path / "t")
    table.upsert([row(1, 1)])
    table.delete([row(2, 0), row(7, 0)])
    assert table.history()[0].files == 0
    assert_holds(table, [row(1, 1)])


def test_a_timestamp_orders_rows(tmp_path: Path) -> None:
    schema = pa.schema({"id": pa.int64(), "name": pa.string(), "at": pa.timestamp("us", "UTC")})
    table = hudilake.create_table(str(tmp_path / "t"), schema, key="id", order_by="at")
    stamps = pa.array([10, 30, 20], pa.timestamp("us", "UTC")).to_pylist()
    table.upsert([{"id": 1, "name": "b", "at": stamps[2]}, {"id": 2, "name": "b", "at": stamps[2]}])
    table.upsert([{"id": 1, "name": "late", "at": stamps[0]}, {"id": 2, "name": "new", "at": stamps[1]}])
    assert_holds(table, [{"id": 1, "name": "b", "at": stamps[2]}, {"id": 2, "name": "new", "at": stamps[1]}])
    table.delete([{"id": 1}])
    assert_holds(table, [{"id": 2, "name": "new", "at": stamps[1]}])


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([{**row(1, 1), "colour": "red"}], "no columns colour"),
        ([{"id": 1, "day": "d"}], "lack the column updated_at"),
        ([{**row(1, 1), "id": None}], "1 row has no value of id"),
        ([{**row(1, 1), "updated_at": None}], "no value of updated_at"),
        ([{**row(1, 1), "id": "one"}], "does not fit"),
        (pa.table({"id": ["one"], "day": ["d"], "updated_at": [1]}), "does not fit the type int64"),
        ([row(1, 1, day=".hidden/../x")], ""),
        (7, "int holds no rows"),
    ],
)
def test_rows_that_do_not_fit_are_refused_in_one_line_and_nothing_is_written(
    rows: Any,  # noqa: ANN401 - anything that is no rows
    said: str,
    tmp_path: Path,
) -> None:
    table = keyed(tmp_path / "t")
    if not said:  # an escaped value names a directory like any other
        table.upsert(rows)
        assert table.scan(["day"]).to_arrow().to_pylist() == [{"day": ".hidden/../x"}]
        return
    with pytest.raises(hudilake.ConfigError, match=said) as error:
        table.upsert(rows)
    assert "\n" not in str(error.value)
    assert error.value.do_next
    assert table.history() == []


@pytest.mark.parametrize("index", ["bloom", "simple", "record_index"])
def test_kinds_that_are_not_written_are_refused(index: Any, tmp_path: Path) -> None:  # noqa: ANN401 - an IndexType
    table = keyed(tmp_path / "t", index=index)
    with pytest.raises(hudilake.UnsupportedError, match=f"not to the index {index}.*Next: write to it through binlake"):
        table.upsert([row(1, 1)])
    assert (table.history(), table.count()) == ([], 0)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"order_by": ""}, "needs a column that orders"),
        ({"order_by": "name"}, "cannot be ordered by name, a string"),
        ({"index": "none"}, "neither key nor order_by"),
        ({"key": ()}, "neither key nor order_by"),
        ({"key": (), "index": "bucket"}, "needs a record key"),
        ({"key": "ident"}, "ident"),
    ],
)
def test_a_definition_that_contradicts_itself_is_refused(given: dict[str, Any], said: str, tmp_path: Path) -> None:
    with pytest.raises(hudilake.ConfigError, match=said):
        keyed(tmp_path / "t", **given)
    assert not hudilake.table_exists(str(tmp_path / "t"))


def test_a_place_with_a_table_is_not_made_again(tmp_path: Path) -> None:
    keyed(tmp_path / "t").upsert([row(1, 1)])
    with pytest.raises(hudilake.AlreadyExistsError):
        keyed(tmp_path / "t")
    assert hudilake.open_table(str(tmp_path / "t")).count() == 1


@pytest.mark.parametrize(
    "bad",
    [{"k": "__empty__", "i": "1"}, {"k": "__null__", "i": "1"}, {"k": "1", "i": "2,i:3"}, {"k": "1,i:2", "i": "3"}],
    ids=["empty", "null", "later", "earlier"],
)
def test_a_row_whose_record_key_others_have_is_refused(tmp_path: Path, bad: dict[str, str]) -> None:
    """One of the two would replace the other without a word."""
    schema = pa.schema({"k": pa.string(), "i": pa.string(), "o": pa.int64()})
    table = hudilake.create_table(str(tmp_path / "t"), schema, key=["k", "i"], order_by="o")
    good = {"k": "", "i": "1", "o": 1}
    table.upsert([good])
    writes: list[Callable[[], object]] = [
        lambda: table.upsert([{"k": "x", "i": "1", "o": 2}, {**bad, "o": 2}]),
        lambda: table.delete([bad]),
        lambda: table.plan_erasure([bad]),
    ]
    for write in writes:
        with pytest.raises(hudilake.ConfigError, match=r"other values have the same record key \(1 row\)"):
            write()
    with table.transaction() as transaction, pytest.raises(hudilake.ConfigError, match="the same record key"):
        transaction.upsert([{**bad, "o": 2}])
    assert_holds(table, [good])
    assert len(table.history()) == 1
