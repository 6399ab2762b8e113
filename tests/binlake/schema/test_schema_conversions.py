"""Columns that get another type: stored rows, late rows and rows after the statement, through both judges."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.binlake.schema.ddl_source import DdlSource, Follower
from tests.judges import hudi_rs
from tests.judges.hudi_spark import HudiSpark
from tests.judges.rows import canonical

COLUMNS = {"id": "int", "name": "varchar(20)", "qty": "int", "price": "decimal(6,2)", "day": "date"}
MORE = {"source": {"debezium": {"decimal_handling_mode": "string", "time_precision_mode": "isostring"}}}


def begun(place: Path, **sections: Any) -> tuple[DdlSource, Follower]:  # noqa: ANN401 - any YAML value
    source = DdlSource()
    source.create("t", COLUMNS)
    for key in range(6):
        source.put("t", key, name=f"{key}x", qty=key - 2, price=f"{key}.50", day=f"2024-02-0{key + 1}")
    follower = Follower(source, place, sections)
    follower.more = MORE
    return source, follower


def retype(source: DdlSource, column: str, kind: str, value: Any) -> None:  # noqa: ANN401 - a function of a cell
    """MODIFY COLUMN; ``value``: of the former value, what the source makes of it."""
    held = source.tables["t"]
    for row in held.rows.values():
        row[column] = None if row[column] is None else value(row[column])
    source.modify("t", column, kind)


def check(source: DdlSource, follower: Follower) -> None:
    """The lake's rows are the source's; compared as texts, for events hold decimals and dates as texts."""
    held = source.tables["t"]
    stored = {key: {n: _text(row.get(n)) for n in held.columns} for key, row in follower.stored("t").items()}
    assert stored == {key: {n: _text(v) for n, v in row.items()} for key, row in held.rows.items()}


def _text(value: Any) -> str | None:  # noqa: ANN401 - any cell
    return None if value is None else str(value)


def chain(source: DdlSource, follower: Follower, look: Any) -> None:  # noqa: ANN401 - a callable
    """Types that no reader reads as one another, each with rows before and after it in one batch."""

    def step() -> None:
        follower.run()
        check(source, follower)
        look()

    step()
    source.put("t", 1, qty=77)
    retype(source, "qty", "varchar(9)", str)
    source.put("t", 2, qty="many")
    step()
    source.put("t", 3, qty="12 apples")
    retype(
        source,
        "qty",
        "bigint",
        lambda text: (
            {"many": 0, "12 apples": 12}.get(text)
            or int("0" + text.strip("-manyples ")) * (-1 if text[0] == "-" else 1)
        ),
    )
    source.put("t", 4, qty=2**40)
    step()
    source.put("t", 7, name="7 after", qty=1)
    retype(source, "name", "int", lambda text: int(text[0]))
    source.delete("t", 5)
    source.put("t", 0, name=9)
    step()
    retype(source, "day", "varchar(10)", str)
    source.put("t", 1, day="some day")
    step()


def compaction(**more: Any) -> dict[str, Any]:  # noqa: ANN401 - any YAML value
    return {"mode": "inline", "after_commits": 1000, "log_ratio": None, **more}


@pytest.mark.first(2)
@pytest.mark.parametrize("rule", [compaction(), compaction(after_commits=2), {"mode": "off"}], ids=str)
def test_columns_take_types_that_no_reader_casts(tmp_path: Path, rule: dict[str, Any]) -> None:
    source, follower = begun(tmp_path, compaction=rule)
    seen: list[int] = []
    chain(source, follower, lambda: seen.append(hudi_rs.snapshot(tmp_path / "shop" / "t").num_rows))
    assert seen == [6, 6, 6, 6, 6]
    assert follower.quarantined() == []
    assert {row["day"] for row in follower.stored("t").values()} >= {"some day", "2024-02-01"}


@pytest.mark.full
@pytest.mark.spark
@pytest.mark.judge
def test_both_judges_read_columns_of_other_types(hudi_spark: HudiSpark, tmp_path: Path) -> None:
    source, follower = begun(tmp_path, compaction=compaction(after_commits=3))

    def look() -> None:
        path = tmp_path / "shop" / "t"
        rows = hudi_rs.snapshot(path)
        columns = [c for c in rows.column_names if not c.startswith("_hoodie_")]
        assert canonical(hudi_spark.snapshot(path.as_uri()), columns) == canonical(rows, columns)
        skipping = {"hoodie.metadata.enable": "true", "hoodie.enable.data.skipping": "true"}
        frame = hudi_spark.frame(path.as_uri(), skipping)
        for name in columns:  # statistics of files with the former type must not hide rows
            value = rows.column(name).drop_null()[0].as_py()
            expected = sum(str(v) == str(value) for v in rows.column(name).to_pylist())
            assert frame.filter(f"`{name}` = '{value}'").count() == expected

    chain(source, follower, look)


@pytest.mark.parametrize("known", ["at once", "after"])
def test_rows_from_before_that_come_late_are_converted(tmp_path: Path, known: str) -> None:
    source, follower = begun(tmp_path)
    follower.run(share=0.3 if known == "after" else 1.0)
    retype(source, "qty", "varchar(9)", str)
    retype(source, "price", "decimal(4,1)", lambda text: f"{text[:1]}.50")
    source.put("t", 9, qty="new")
    follower.run(share=0.5)
    follower.run()
    check(source, follower)


def test_a_table_that_begins_after_the_statement(tmp_path: Path) -> None:
    source, follower = begun(tmp_path)
    retype(source, "qty", "varchar(9)", str)
    retype(source, "name", "int", lambda text: int(text[0]))
    source.put("t", 9, qty="new", name=4)
    follower.run()
    check(source, follower)


def test_a_delete_outlives_the_rewriting_of_its_table(tmp_path: Path) -> None:
    source, follower = begun(tmp_path, compaction=compaction())
    follower.run(share=0.5)
    source.delete("t", 0)
    retype(source, "qty", "varchar(9)", str)
    source.put("t", 1, qty="x")
    follower.run()
    check(source, follower)


def test_what_a_conversion_leaves_open_is_recorded_and_said(tmp_path: Path) -> None:
    source, follower = begun(tmp_path)
    follower.run()
    held = source.tables["t"]
    for row in held.rows.values():
        row["price"] = None
    source.modify("t", "price", "uuid")
    follower.run()
    why = "not determined: price: values that are no UUID or address become null or zero by rules of their own"
    assert follower.verdicts() == [f"convert: price becomes uuid, string in the lake: rows before hold null, {why}"]


@pytest.mark.parametrize("share", [0.4, 1.0])
def test_a_column_that_comes_back_with_another_type(tmp_path: Path, share: float) -> None:
    source, follower = begun(tmp_path)
    follower.run(share=share)
    source.drop("t", "qty")
    source.put("t", 1, name="without")
    source.add("t", "qty", "varchar(9)", "none", "NOT NULL DEFAULT 'none'")
    source.put("t", 2, qty="some")
    follower.run()
    check(source, follower)


@pytest.mark.parametrize("share", [0.4, 1.0])
def test_a_renamed_column_takes_another_type(tmp_path: Path, share: float) -> None:
    source, follower = begun(tmp_path)
    follower.run(share=share)
    held = source.tables["t"]
    for row in held.rows.values():
        row["label"] = int(row.pop("name")[0])
    columns = {"label" if n == "name" else n: "int" if n == "name" else kind for n, kind in held.columns.items()}
    source.execute("ALTER TABLE t CHANGE name label INT", "t", columns)
    source.put("t", 2, label=77)
    follower.run()
    check(source, follower)


@pytest.mark.parametrize("share", [0.4, 1.0])
def test_a_table_made_again_with_other_types(tmp_path: Path, share: float) -> None:
    source, follower = begun(tmp_path)
    follower.run(share=share)
    source.drop_table("t")
    source.create("t", COLUMNS | {"qty": "varchar(9)", "name": "int"}, snapshot=False)
    source.put("t", 2, qty="again", name=4)
    follower.run()
    check(source, follower)


def test_text_is_converted_with_the_character_set_of_its_table(tmp_path: Path) -> None:
    source, follower = begun(tmp_path)
    source.put("t", 1, name="x日é")
    follower.run()
    source.tables["t"].rows[1]["name"] = "x?é"
    source.execute("ALTER TABLE t CONVERT TO CHARACTER SET latin1", "t", COLUMNS)
    follower.run()
    check(source, follower)


@pytest.mark.parametrize("share", [0.4, 1.0])
def test_a_key_column_becomes_text(tmp_path: Path, share: float) -> None:
    source, follower = begun(tmp_path)
    follower.run(share=share)
    source.modify("t", "id", "varchar(20)")
    follower.run()
    follower.run()
    rows = follower.all_rows("t")
    assert sorted((row["id"], row["_hoodie_record_key"]) for row in rows) == [(f"{n}", f"{n}") for n in range(6)]
    assert follower.quarantined() == []
