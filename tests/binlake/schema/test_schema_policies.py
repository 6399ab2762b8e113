"""What each policy makes of a statement; refused rows wait in quarantine, all others end as the source's."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.binlake.schema.ddl_source import DdlSource, Follower
from tests.binlake.schema.test_schema_changes import COLUMNS, recorded, started


def test_null_leaves_rows_that_were_there_without_the_default(tmp_path: Path) -> None:
    source, follower = started(tmp_path, add="null")
    source.add("t", "tier", "varchar(8)", "basic", "DEFAULT 'basic'")
    source.put("t", 1, tier="gold")
    follower.run()
    assert {key: row["tier"] for key, row in follower.stored("t").items()} == dict.fromkeys(range(8)) | {1: "gold"}


@pytest.mark.parametrize(
    ("definition", "told"),
    [
        (
            "varchar(36) DEFAULT (UUID())",
            "the expression UUID() is not known to be computed as in MySQL: Uuid may have another result here",
        ),
        (
            "int AS (qty / 2) STORED",
            "the expression qty / 2 is not known to be computed as in MySQL: Div may have another result here",
        ),
        ("date NOT NULL", "what date NOT NULL without a default holds in old rows cannot be told"),
    ],
)
def test_a_default_that_is_no_constant_leaves_null_and_says_so(tmp_path: Path, definition: str, told: str) -> None:
    source, follower = started(tmp_path)
    source.execute(f"ALTER TABLE t ADD x {definition}", "t", COLUMNS | {"x": definition.split(" ")[0]})
    follower.run()
    assert follower.verdicts() == [f"add: x is null in rows before, as {told}"]
    assert {row["x"] for row in follower.stored("t").values()} == {None}


@pytest.mark.parametrize(("text", "values"), [("caf\ufffd\ufffd", {None}), ("café", {"café"})])
def test_a_default_that_the_connector_could_not_read_leaves_null_and_says_so(
    tmp_path: Path, text: str, values: set[str | None]
) -> None:
    """The second is the control."""
    source, follower = started(tmp_path)
    source.execute(f"ALTER TABLE t ADD x varchar(9) NOT NULL DEFAULT '{text}'", "t", COLUMNS | {"x": "varchar(9)"})
    follower.run()
    assert {row["x"] for row in follower.stored("t").values()} == values
    why = [["x", f"the connector could not read the characters of {text!r}"]]
    assert recorded(tmp_path)[-1].get("undetermined", []) == (why if values == {None} else [])


@pytest.mark.parametrize("sign", ["\ufffd", "é"])
@pytest.mark.parametrize(
    "statement", ["ALTER TABLE t ADD x {}", "ALTER TABLE t MODIFY name {}", "CREATE TABLE t2 ({})"]
)
def test_rows_of_an_enum_that_the_connector_could_not_read_are_refused(
    tmp_path: Path, statement: str, sign: str
) -> None:
    """Debezium takes the values of ENUM columns from their definition. The other sign is the control."""
    source, follower = started(tmp_path)
    follower.run()
    kind = f"enum('a','caf{sign}')"
    column = "name" if "MODIFY" in statement else "x"
    table = "t2" if "t2" in statement else "t"
    if table == "t2":
        source.create("t2", {"id": "int", "x": kind}, snapshot=False)
    else:
        source.execute(statement.format(kind), "t", COLUMNS | {column: kind})
    source.put(table, 1, **{column: f"caf{sign}"})
    follower.run()
    if sign == "é":
        assert (follower.quarantined(), follower.stored(table)[1][column]) == ([], "café")
        return
    [(reason, detail)] = set(follower.quarantined())
    assert reason == "ddl_refused"
    assert f"the connector could not read the characters of {column} {kind}" in detail
    assert "-Dfile.encoding=UTF-8" in detail


def test_a_dropped_column_keeps_its_values_and_is_null_in_new_rows(tmp_path: Path) -> None:
    source, follower = started(tmp_path)
    source.drop("t", "qty")
    source.put("t", 1, name="x")
    follower.run()
    follower.check("t")
    assert {key: row["qty"] for key, row in follower.stored("t").items()} == {n: n for n in range(8)} | {1: None}


def test_a_renamed_column_is_kept_under_its_old_name_alone(tmp_path: Path) -> None:
    source, follower = started(tmp_path, rename="keep")
    source.rename("t", "qty", "amount")
    source.put("t", 1, amount=9)
    follower.run()
    stored = follower.stored("t")
    assert (stored[1]["qty"], stored[1]["amount"], stored[2]["qty"], stored[2]["amount"]) == (None, 9, 2, None)
    assert follower.verdicts() == ["keep: qty becomes amount: rows before keep qty, and have amount null"]


def test_a_narrower_type_keeps_the_wide_column(tmp_path: Path) -> None:
    source, follower = started(tmp_path)
    source.modify("t", "qty", "bigint")
    source.put("t", 1, qty=2**40)
    source.put("t", 1, qty=7)
    source.modify("t", "qty", "smallint")
    source.put("t", 2, qty=8)
    follower.run()
    follower.check("t")
    assert follower.verdicts() == [
        "widen: qty becomes int64 in the lake, was int32",
        "convert: qty becomes smallint, int64 in the lake: rows before are converted",
    ]


@pytest.mark.first(4)
@pytest.mark.parametrize(
    ("policies", "change", "back", "why"),
    [
        ({"add": "refuse"}, "add", "drop", "column more is new"),
        ({"rename": "refuse"}, "rename", None, "column qty becomes amount"),
        ({"drop": "refuse"}, "drop_qty", None, "column qty is dropped"),
        ({"widen": "refuse"}, "widen", "narrow", "column qty becomes bigint, the lake has int32"),
        ({"convert": "refuse"}, "text", "number", "column qty becomes varchar(9), the lake has int32"),
        ({"key": "refuse"}, "key", None, "the key becomes (id, qty), the lake has (id)"),
    ],
    ids=["add", "rename", "drop", "widen", "convert", "key"],
)
def test_refusal_quarantines_the_rows_from_there_on_and_lets_others_run(
    tmp_path: Path, policies: dict[str, str], change: str, back: str | None, why: str
) -> None:
    source, follower = started(tmp_path, **policies)
    source.create("other", COLUMNS)
    source.put("other", 1, name="o")
    source.put("t", 0, name="before")
    before = {key: dict(row) for key, row in source.tables["t"].rows.items()}
    _change(source, change)
    source.put("t", 1, name="refused")
    source.put("other", 2, name="o")
    event = follower.run()
    follower.check("other")
    assert {k: {n: r[n] for n in COLUMNS} for k, r in follower.stored("t").items()} == before
    assert follower.quarantined() == [("ddl_refused", why)]
    assert {t.table: t.quarantined for t in event.tables if t.quarantined} == {"shop.t": 1}
    follower.restart()
    source.put("t", 2, name="refused too")
    assert follower.run().ddl == ()
    assert follower.quarantined() == [("ddl_refused", why)] * 2
    if back is not None:
        _change(source, back)
        source.put("t", 3, name="taken")
        follower.run()
        assert follower.stored("t")[3]["name"] == "taken"
        assert len(follower.quarantined()) == 2
    assert any(str(ruling[0]) == "refuse" for entry in recorded(tmp_path) for ruling in _verdicts(entry))


def _verdicts(entry: dict[str, object]) -> list[list[str]]:
    found = entry["verdicts"]
    assert isinstance(found, list)
    return found


def _change(source: DdlSource, change: str) -> None:
    held = source.tables["t"]
    if change == "add":
        source.add("t", "more", "int", None)
    elif change == "drop":
        source.drop("t", "more")
    elif change == "drop_qty":
        source.drop("t", "qty")
    elif change == "rename":
        source.rename("t", "qty", "amount")
    elif change in ("widen", "narrow"):
        source.modify("t", "qty", "bigint" if change == "widen" else "int")
    elif change == "key":
        source.rekey("t", "ALTER TABLE t DROP PRIMARY KEY, ADD PRIMARY KEY (id, qty)", ("id", "qty"))
    else:
        for row in held.rows.values():
            row["qty"] = str(row["qty"]) if change == "text" else int(row["qty"])
        source.modify("t", "qty", "varchar(9)" if change == "text" else "int")


def test_a_refused_statement_is_carried_out_once_the_settings_allow_it(tmp_path: Path) -> None:
    source, follower = started(tmp_path, add="refuse")
    source.add("t", "tier", "int", 3, "DEFAULT 3")
    follower.run()
    assert "tier" not in follower.stored("t")[0]
    follower.sections["schema_changes"] = {"add": "fill"}
    follower.restart()
    source.put("t", 1, tier=4)
    follower.run()
    follower.check("t")
    assert follower.verdicts()[-1] == "fill: tier is 3 in rows before"


def test_whole_numbers_become_text_where_the_settings_say_so(tmp_path: Path) -> None:
    source, follower = started(tmp_path, convert="string")
    source.put("t", 1, qty=11)
    _change(source, "text")
    source.put("t", 2, qty="x2")
    follower.run()
    follower.check("t")
    assert follower.verdicts() == ["convert: qty becomes varchar(9): text in the lake"]
    follower.restart()
    source.tables["t"].rows = {k: r | {"qty": "5"} for k, r in source.tables["t"].rows.items()}
    source.modify("t", "qty", "int")
    source.put("t", 3, qty=12)
    follower.run()
    assert follower.stored("t")[3]["qty"] == "12"


def test_a_dropped_table_stays_and_makes_way_for_one_of_its_name(tmp_path: Path) -> None:
    source, follower = started(tmp_path)
    source.drop_table("t")
    follower.run()
    assert len(follower.stored("t")) == 8
    source.create("t", {"id": "int", "name": "varchar(20)", "more": "int"}, snapshot=False)
    source.put("t", 3, name="again", more=1)
    follower.run()
    follower.check("t")
    assert [v.split(":")[0] for v in follower.verdicts()] == ["keep", "delete"]


def test_a_table_made_anew_before_the_stream_saw_it(tmp_path: Path) -> None:
    source = DdlSource()
    source.create("t", COLUMNS)
    source.put("t", 1, name="former")
    source.put("t", 2, name="former")
    source.drop_table("t")
    source.create("t", COLUMNS, snapshot=False)
    source.put("t", 2, name="latter")
    follower = Follower(source, tmp_path)
    follower.run()
    follower.check("t")


def test_a_snapshot_of_a_table_made_anew_is_not_taken_for_the_dropped_one(tmp_path: Path) -> None:
    source = DdlSource()
    source.create("t", COLUMNS)
    source.tables["t"].rows = {key: {"id": key, "name": "former", "qty": key} for key in range(4)}
    source.snapshot("t")
    source.drop_table("t")
    source.create("t", COLUMNS, snapshot=False)
    source.tables["t"].rows = {key: {"id": key, "name": "latter", "qty": key} for key in range(2, 6)}
    source.snapshot("t")
    first, second = Follower(source, tmp_path / "at once"), Follower(source, tmp_path / "by and by")
    first.run()
    first.check("t")
    second.run(ddl=1, share=0.5)
    second.run()
    second.check("t")


@pytest.mark.parametrize(("policy", "rows"), [("keep", 9), ("delete", 1)])
def test_policies_of_dropped_tables(tmp_path: Path, policy: str, rows: int) -> None:
    source, follower = started(tmp_path, drop_table=policy, recreate_table="keep")
    source.drop_table("t")
    source.create("t", COLUMNS, snapshot=False)
    source.put("t", 100, name="again")
    follower.run()
    assert len(follower.stored("t")) == rows


def test_a_database_that_is_dropped_and_made_again(tmp_path: Path) -> None:
    source, follower = started(tmp_path)
    source.drop_database()
    source.create("t", COLUMNS, snapshot=False)
    source.put("t", 3, name="again")
    follower.run()
    follower.check("t")


def test_order_and_character_set_of_columns_change_nothing(tmp_path: Path) -> None:
    source, follower = started(tmp_path)
    moved = {"qty": "int", "id": "int", "name": "varchar(20)"}
    source.execute("ALTER TABLE t MODIFY qty INT FIRST, CONVERT TO CHARACTER SET latin1", "t", moved)
    source.execute("ALTER TABLE t ENGINE=InnoDB, ADD INDEX (qty)", "t", moved)
    source.put("t", 1, name="after")
    follower.run()
    follower.check("t")
    assert follower.verdicts() == [
        "apply: qty becomes INT: int32 in the lake as before",
        "convert: name becomes varchar(20) character set latin1, string in the lake: rows before are converted",
        "apply: nothing that concerns the lake",
    ]
    source.ddl += source.ddl  # redelivered
    assert follower.run().ddl == ()


def test_a_key_that_only_the_source_knows_is_refused_and_the_former_key_goes_on(tmp_path: Path) -> None:
    """What the refusal says to do brings the rows; the new column is null in those before, and is named."""
    source, follower = started(tmp_path)
    keyed = "ALTER TABLE t ADD COLUMN k BIGINT NOT NULL AUTO_INCREMENT FIRST, DROP PRIMARY KEY, ADD PRIMARY KEY (k)"
    for key, row in source.tables["t"].rows.items():
        row["k"] = 100 + key
    source.rekey("t", keyed, ("k",), COLUMNS | {"k": "bigint"})
    source.put("t", 1, name="after")
    follower.run()
    [(reason, detail)] = set(follower.quarantined())
    assert reason == "ddl_refused"
    assert "name it as the table's key in tables.overrides" in detail
    follower.sections = {"key": ["id"]}
    follower.restart()
    source.put("t", 2, name="later")
    follower.run()
    stored = follower.stored("t")
    assert stored[2] == source.tables["t"].rows[2]
    assert stored[3]["k"] is None
    assert recorded(tmp_path)[-1]["undetermined"] == [["k", "AUTO_INCREMENT is no constant"]]
