"""Which rows are in a partition, beside MariaDB; and statements about partitions through a stream."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from binlake.decode.changes import SourceTable
from binlake.decode.ddl.partitions import (
    ChangePartitions,
    Partitioning,
    changed_partitioning,
    parse_partitioning,
    partition_clause,
)
from binlake.decode.ddl.tokens import tokens_of
from binlake.decode.types.mysql_types import parse_type
from binlake.schema.rules.judged import TableSchemaState
from binlake.schema.rules.partition_clauses import without_place
from binlake.schema.rules.partitions.known import PartitioningPeriod
from binlake.schema.rules.partitions.members import Removal, check_removal, members
from binlake.schema.rules.undetermined import WHOLE_ROWS
from binlake.schema.rules.verdicts import judge_clauses
from binlake.settings import TablesSettings
from embedded.mariadb import EmbeddedMariaDB
from hudilake.errors import UnsupportedError
from tests.binlake.schema.conversion_oracle import read
from tests.binlake.schema.ddl_source import DdlSource, Follower
from tests.selection import first

COLUMNS = {"id": "int", "n": "int", "d": "date", "m": "datetime(3)", "s": "varchar(12)", "ts": "timestamp"}
DEFINITIONS = (
    "RANGE (n) (PARTITION a VALUES LESS THAN (-5), PARTITION b VALUES LESS THAN (10 * 5 + 1), PARTITION c VALUES LESS "
    "THAN MAXVALUE)",
    "RANGE (TO_DAYS(d)) (PARTITION a VALUES LESS THAN (TO_DAYS('2001-02-03')), PARTITION b VALUES LESS THAN (750000), "
    "PARTITION c VALUES LESS THAN MAXVALUE)",
    "RANGE (YEAR(d) * 100 + MONTH(d)) (PARTITION a VALUES LESS THAN (201506), PARTITION b VALUES LESS THAN MAXVALUE)",
    "RANGE (UNIX_TIMESTAMP(ts)) (PARTITION a VALUES LESS THAN (UNIX_TIMESTAMP('2010-01-01 00:00:00')), PARTITION b "
    "VALUES LESS THAN MAXVALUE)",
    "RANGE COLUMNS (d, n) (PARTITION a VALUES LESS THAN ('2005-05-05', 0), PARTITION b VALUES LESS THAN ('2005-05-05', "
    "50), PARTITION c VALUES LESS THAN (MAXVALUE, MAXVALUE))",
    "RANGE COLUMNS (m) (PARTITION a VALUES LESS THAN ('2005-05-05 12:00:00'), PARTITION b VALUES LESS THAN (MAXVALUE))",
    "LIST (n MOD 4) (PARTITION a VALUES IN (NULL, -3, -1), PARTITION b VALUES IN (-2, 0, 1, 2, 3))",
    "LIST (QUARTER(d)) (PARTITION a VALUES IN (1, 3), PARTITION b VALUES IN (2, 4), PARTITION c VALUES IN (NULL))",
    "LIST COLUMNS (s) (PARTITION a VALUES IN ('x', 'Abc', NULL), PARTITION b VALUES IN ('y', '', 'z '))",
    "HASH (n) PARTITIONS 5",
    "LINEAR HASH (n DIV 3) PARTITIONS 6",
    "HASH (DAYOFYEAR(d) + WEEKDAY(d)) PARTITIONS 3",
    "HASH (TO_SECONDS(m)) PARTITIONS 4",
    "HASH (HOUR(m) * 60 + MINUTE(m)) PARTITIONS 4",
    "RANGE (n) SUBPARTITION BY HASH (TO_DAYS(d)) SUBPARTITIONS 3 (PARTITION a VALUES LESS THAN (0), PARTITION b VALUES "
    "LESS THAN MAXVALUE)",
    "LIST (n % 2) SUBPARTITION BY LINEAR HASH (DAY(d)) (PARTITION a VALUES IN (0, NULL) (SUBPARTITION u, SUBPARTITION "
    "v), PARTITION b VALUES IN (1, -1) (SUBPARTITION w, SUBPARTITION x))",
)
ROWS = [
    (n, days, f"200{n % 10}-0{1 + n % 9}-{1 + n % 28:02d} {n % 24:02d}:{n % 60:02d}:00.{n % 1000:03d}", text)
    for n, days, text in [
        (n * 7 - 60, f"{1995 + n % 30}-{1 + n % 12:02d}-{1 + n % 28:02d}", ["x", "abc", "Y ", "", "z"][n % 5])
        for n in range(60)
    ]
]


def filled(server: EmbeddedMariaDB, definition: str) -> tuple[pa.Table, Partitioning]:
    """A table with rows under a definition: its rows, and the definition as SHOW CREATE TABLE gives it."""
    columns = ", ".join(f"c{at} {kind} NULL" for at, kind in enumerate(COLUMNS.values()))
    for at, name in enumerate(COLUMNS):
        columns = columns.replace(f"c{at} ", f"{name} ")
    server.execute(f"CREATE OR REPLACE TABLE x.t ({columns}) PARTITION BY {definition}")
    values = [
        f"({at}, {n}, '{d}', '{m}', '{s}', '{m[:19]}')" if at % 9 else f"({at}, NULL, NULL, NULL, NULL, '{m[:19]}')"
        for at, (n, d, m, s) in enumerate(ROWS)
    ]
    server.execute(f"SET sql_mode=''; INSERT INTO x.t VALUES {', '.join(values)}")
    renamed = ", ".join(f"{name} AS c{at}" for at, name in enumerate(COLUMNS))
    server.execute(f"CREATE OR REPLACE VIEW x.v AS SELECT {renamed} FROM x.t")
    kinds = [parse_type(kind) for kind in COLUMNS.values()]
    arrays = read(server, "x.v", kinds, order="c0")
    [shown] = ["\n".join(server.execute("SHOW CREATE TABLE x.t"))]
    clause = partition_clause(tokens_of(shown))
    assert clause is not None
    assert clause.defined is not None
    return pa.table(arrays, names=list(COLUMNS)), clause.defined


@pytest.mark.full
@pytest.mark.database
@pytest.mark.parametrize("definition", first(8, DEFINITIONS))
def test_rows_are_found_in_the_partition_where_the_server_has_them(server: EmbeddedMariaDB, definition: str) -> None:
    rows, known = filled(server, definition)
    names = [name for part in known.parts for name in (part.name, *part.subs)]
    assert parse_partitioning(str(known)) == known
    total = 0
    for name in names:
        expected = {int(line) for line in server.execute(f"SELECT id FROM x.t PARTITION ({name})")}
        removal = Removal(known, (name,))
        check_removal(removal, rows.schema)
        found = rows.filter(pa.array(members(rows, removal)))
        assert set(found.column("id").to_pylist()) == expected
        total += len(expected)
    assert total == len(rows) * (2 if known.sub is not None else 1)


LISTS = {
    "utf8mb4_bin": ("'a', 'b'", "'A', 'a '", "'é', 'e'"),
    "utf8mb4_general_ci": ("'a', 'b'", "'e', 'x'", "'ß', 'x '"),
    "utf8mb4_nopad_bin": ("'a', 'b'", "'a', 'a '", "'A', 'a'"),
    "utf8mb4_uca1400_ai_cs": ("'é', 'E'", "'a', 'A'", "'a', 'b'"),
}
TEXTS = ("a", "A", "a ", "A ", "b", "B", "e", "E", "é", "É", "ss", "ß", "x", "X ", "", " a")


@pytest.mark.full
@pytest.mark.database
@pytest.mark.parametrize("collation", LISTS)
def test_texts_are_found_as_the_server_compares_them_or_not_at_all(server: EmbeddedMariaDB, collation: str) -> None:
    found = unknown = 0
    for listed in LISTS[collation]:
        first_text, second = listed.split(", ")
        for other in ("", ", PARTITION d DEFAULT"):
            definition = (
                f"LIST COLUMNS (s) (PARTITION p VALUES IN ({first_text}), PARTITION q VALUES IN ({second}){other})"
            )
            values = ", ".join(f"('{text}')" for text in TEXTS)
            server.execute(
                f"SET NAMES utf8mb4; CREATE OR REPLACE TABLE x.t (s VARCHAR(9) COLLATE {collation}) PARTITION BY "
                f"{definition}; INSERT IGNORE INTO x.t VALUES {values}"
            )
            known = parse_partitioning(f"PARTITION BY {definition}")
            for part in known.parts:
                asked = f"SELECT HEX(s) FROM x.t PARTITION ({part.name})"
                its = {bytes.fromhex(line).decode() for line in server.execute(asked)}
                for text in (bytes.fromhex(line).decode() for line in server.execute("SELECT HEX(s) FROM x.t")):
                    try:
                        mask = members(pa.table({"s": [text]}), Removal(known, (part.name,)))
                    except UnsupportedError:
                        assert other or not (text + listed).isascii() or text.strip().lower() == "a"
                        unknown += 1
                    else:
                        assert bool(mask[0]) is (text in its), (listed, other, text, part.name)
                        found += 1
    assert found > 60
    assert unknown > 10


@pytest.mark.parametrize(
    ("old", "new", "known"),
    [
        ("'a', 'b'", "'a'", True),
        ("'a', 'b'", "'a', 'B'", False),
        ("'a', 'b'", "'a', 'b '", False),
        ("'a', 'e'", "'a', 'é'", False),
        ("'a', 'é'", "'a', 'é'", True),
    ],
)
def test_rows_go_if_no_collation_keeps_them(old: str, new: str, known: bool) -> None:
    former = parse_partitioning(
        f"PARTITION BY LIST COLUMNS (s) (PARTITION a VALUES IN ({old}), PARTITION z VALUES IN ('z'))"
    )
    changed = partition_clause(tokens_of(f"REORGANIZE PARTITION a INTO (PARTITION c VALUES IN ({new}))"))
    assert changed is not None
    rows = pa.table({"s": ["a", "A", "b", "B", "z", "Z"]})
    if known:
        removal = without_place(changed, PartitioningPeriod(0, former), rows.schema)
        assert (removal is None) is (old == new)
        if removal is not None:
            assert members(rows, removal).tolist() == [False, False, True, True, False, False]
    else:
        with pytest.raises(UnsupportedError, match="depends on a collation"):
            without_place(changed, PartitioningPeriod(0, former), rows.schema)


@pytest.mark.parametrize(
    ("definition", "why"),
    [
        ("KEY (id) PARTITIONS 3", "a function that only the server has"),
        (
            "RANGE COLUMNS (s) (PARTITION a VALUES LESS THAN ('m'), PARTITION b VALUES LESS THAN (MAXVALUE))",
            "collation",
        ),
        ("HASH (CRC32(s)) PARTITIONS 3", "cannot be evaluated"),
        ("HASH (gone) PARTITIONS 3", "gone is not in the lake"),
    ],
)
def test_what_cannot_be_told_exactly_is_refused(definition: str, why: str) -> None:
    known = parse_partitioning(f"PARTITION BY {definition}")
    schema = pa.schema([("id", pa.int32()), ("s", pa.string())])
    with pytest.raises(UnsupportedError, match=why):
        check_removal(Removal(known, (known.parts[0].name,)), schema)


@pytest.mark.parametrize(
    ("clause", "names"),
    [
        ("ADD PARTITION (PARTITION d VALUES LESS THAN (30))", "a b c d"),
        ("DROP PARTITION b", "a c"),
        (
            "REORGANIZE PARTITION a, b INTO (PARTITION u VALUES LESS THAN (5), PARTITION v VALUES LESS THAN (10))",
            "u v c",
        ),
        ("TRUNCATE PARTITION a", "a b c"),
        ("REMOVE PARTITIONING", None),
        ("PARTITION BY HASH (n) PARTITIONS 2", "p0 p1"),
    ],
)
def test_statements_change_the_definition(clause: str, names: str | None) -> None:
    parts = ", ".join(f"PARTITION {name} VALUES LESS THAN ({at})" for at, name in enumerate("abc"))
    known = parse_partitioning(f"PARTITION BY RANGE (n) ({parts})")
    changed = partition_clause(tokens_of(clause))
    assert isinstance(changed, ChangePartitions)
    after = changed_partitioning(known, changed)
    assert (" ".join(part.name for part in after.parts) if after is not None else None) == names


@pytest.mark.full
@pytest.mark.parametrize(
    ("method", "clause", "left"),
    [
        ("LIST (n)", "PARTITION few VALUES IN (1, 05), PARTITION new VALUES IN (8)", {1, 5, 6, None}),
        ("LIST (n)", "PARTITION few VALUES IN (2, 4, 3, 5, 1)", {1, 2, 3, 4, 5, 6, None}),
        ("LIST COLUMNS (n)", "PARTITION few VALUES IN (4, 2)", {2, 4, 6, None}),
    ],
)
def test_rows_that_no_new_partition_takes_go(
    server: EmbeddedMariaDB, method: str, clause: str, left: set[int | None]
) -> None:
    definition = "(PARTITION a VALUES IN (1, 2, 3), PARTITION b VALUES IN (4, 5), PARTITION c VALUES IN (6, NULL))"
    known = parse_partitioning(f"PARTITION BY {method} {definition}")
    numbers = [1, 2, 3, 4, 5, 6, None]
    rows = pa.table({"n": pa.array(numbers, pa.int32())})
    server.execute(f"CREATE OR REPLACE TABLE x.t (n INT) PARTITION BY {method} {definition}")
    values = ", ".join(f"({'NULL' if n is None else n})" for n in numbers)
    statement = f"REORGANIZE PARTITION a, b INTO ({clause})"
    server.execute(f"INSERT INTO x.t VALUES {values}; ALTER TABLE x.t {statement}")
    assert {None if line == "NULL" else int(line) for line in server.execute("SELECT n FROM x.t")} == left
    changed = partition_clause(tokens_of(statement))
    assert changed is not None
    removal = without_place(changed, PartitioningPeriod(0, known), rows.schema)
    gone = members(rows, removal) if removal is not None else [False] * len(rows)
    assert {n for n, removed in zip(numbers, gone, strict=True) if not removed} == left


@pytest.mark.parametrize(("old", "new"), [("DEFAULT", "VALUES IN (1)"), ("VALUES IN (1)", "DEFAULT")])
def test_rows_whose_place_is_not_known_are_named(old: str, new: str) -> None:
    known = parse_partitioning(f"PARTITION BY LIST (n) (PARTITION a VALUES IN (2), PARTITION b {old})")
    changed = partition_clause(tokens_of(f"REORGANIZE PARTITION a, b INTO (PARTITION c {new})"))
    assert changed is not None
    with pytest.raises(UnsupportedError, match="a DEFAULT partition takes"):
        without_place(changed, PartitioningPeriod(0, known), pa.schema([("n", pa.int32())]))
    rules = TablesSettings.model_validate({}).rules(SourceTable("d", "t"))
    state = TableSchemaState(pa.schema([("n", pa.int32())]), (), None, rules)
    assert [one.column for one in judge_clauses((changed,), 5, state).undetermined] == [WHOLE_ROWS]


def partitioned(
    place: Path,
    definition: str = "RANGE (n) (PARTITION a VALUES LESS THAN (5), PARTITION b VALUES LESS THAN MAXVALUE)",
    **policies: str,
) -> tuple[DdlSource, Follower]:
    """A table ``t`` of ten rows, that the snapshot has told with its partitions."""
    source = DdlSource()
    source.create("t", {"id": "int", "n": "int"}, options=f" PARTITION BY {definition}")
    for key in range(10):
        source.put("t", key, n=key)
    return source, Follower(source, place, {"schema_changes": policies})


def empty(source: DdlSource, statement: str, low: int, high: int) -> None:
    """A statement that deletes the rows with low <= n < high."""
    held = source.tables["t"]
    held.rows = {key: row for key, row in held.rows.items() if not low <= row["n"] < high}
    source.execute(statement, "t", held.columns)


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_rows_of_a_partition_are_deleted_whenever_they_come(tmp_path: Path, share: float) -> None:
    source, follower = partitioned(tmp_path)
    follower.run(share=share)
    empty(source, "ALTER TABLE t TRUNCATE PARTITION a", 0, 5)
    source.put("t", 3, n=3)
    source.put("t", 11, n=-1)
    follower.run(share=0.5)
    follower.run()
    follower.check("t")
    empty(source, "ALTER TABLE t DROP PARTITION b", 5, 99)
    source.execute(
        "ALTER TABLE t ADD PARTITION (PARTITION z VALUES LESS THAN MAXVALUE)", "t", {"id": "int", "n": "int"}
    )
    source.put("t", 8, n=8)
    follower.run()
    follower.check("t")
    empty(source, "ALTER TABLE t TRUNCATE PARTITION z", 5, 99)
    follower.run()
    follower.check("t")
    source.put("t", 9, n=9)
    follower.restart()
    follower.run()
    follower.check("t")
    assert follower.quarantined() == []


@pytest.mark.parametrize("key", [("id",), ("id", "n"), ()])
@pytest.mark.parametrize("live", [False, True])
def test_a_row_that_moved_into_the_partition_is_deleted(tmp_path: Path, key: tuple[str, ...], live: bool) -> None:
    """Its older version is in the lake, and the move comes after the statement was carried out."""
    source = DdlSource(keyed=bool(key))
    source.create("t", {"id": "int", "n": "int"}, options=" PARTITION BY HASH (n) PARTITIONS 2", key=key)
    follower = Follower(source, tmp_path)
    for number in range(6):
        source.put("t", number, n=number)
    follower.run()
    source.put("t", 1, n=12)
    source.put("t", 2, n=13)
    source.put("t", 3, n=33)
    source.delete("t", 4)
    if live:
        follower.run()
    held = source.tables["t"]
    held.rows = {number: row for number, row in held.rows.items() if row["n"] % 2}
    source.execute("ALTER TABLE t TRUNCATE PARTITION p0", "t", held.columns)
    source.put("t", 0, n=0)
    source.put("t", 1, n=1)
    for _ in range(2):
        follower.run()
        assert follower.rows("t") == sorted(held.rows.values(), key=str)
        source.put("t", 4, n=4)


def test_a_table_without_a_key_loses_the_rows_of_a_partition(tmp_path: Path) -> None:
    source, follower = partitioned(tmp_path)
    source.keyed = False
    source.tables.clear()
    source.log.__init__()  # type: ignore[misc]
    source.ddl.clear()
    source.create("t", {"id": "int", "n": "int"}, options=" PARTITION BY HASH (n) PARTITIONS 2")
    for key in range(6):
        source.put("t", key, n=key)
    follower.run(share=0.5)
    held = source.tables["t"]
    held.rows = {key: row for key, row in held.rows.items() if row["n"] % 2}
    source.execute("ALTER TABLE t TRUNCATE PARTITION p0", "t", held.columns)
    source.put("t", 8, n=8)
    follower.run()
    assert follower.rows("t") == sorted(held.rows.values(), key=str)


@pytest.mark.parametrize(
    ("definition", "statement", "why"),
    [
        (
            "KEY (id) PARTITIONS 2",
            "ALTER TABLE t TRUNCATE PARTITION p0",
            "truncate partition p0: rows of partitions by KEY are found by a function that only the server has",
        ),
        (
            "HASH (n) PARTITIONS 2",
            "ALTER TABLE t EXCHANGE PARTITION p0 WITH TABLE u",
            "exchange partition p0: the rows of the other table take the place of the partition's rows",
        ),
    ],
)
def test_a_statement_whose_rows_are_not_known_stops_the_table(
    tmp_path: Path, definition: str, statement: str, why: str
) -> None:
    source, follower = partitioned(tmp_path, definition)
    follower.run()
    source.execute(statement, "t", source.tables["t"].columns)
    source.put("t", 3, n=30)
    follower.run()
    assert follower.quarantined() == [("ddl_refused", why)]
    follower.sections["schema_changes"] = {"partitions": "keep"}
    follower.restart()
    source.put("t", 4, n=40)
    follower.run()
    assert follower.stored("t")[4]["n"] == 40


def test_both_tables_of_an_exchange_stop(tmp_path: Path) -> None:
    source, follower = partitioned(tmp_path, "HASH (n) PARTITIONS 2")
    source.create("u", {"id": "int", "n": "int"})
    source.put("u", 1, n=2)
    follower.run()
    source.execute("ALTER TABLE t EXCHANGE PARTITION p0 WITH TABLE u", "t", source.tables["t"].columns)
    source.put("u", 1, n=3)
    follower.run()
    assert follower.quarantined() == [
        (
            "ddl_refused",
            "exchange with a partition of another table: the rows of the other table take the place of the partition's "
            "rows",
        )
    ]


@pytest.mark.parametrize(
    ("statement", "filled"),
    [
        ("ALTER TABLE {} EXCHANGE PARTITION p0 WITH TABLE {}", "u"),
        ("ALTER TABLE {} CONVERT TABLE {} TO PARTITION b VALUES LESS THAN (9)", "t"),
        ("ALTER TABLE {} CONVERT PARTITION a TO TABLE {}", "u"),
        ("ALTER TABLE {0} IMPORT TABLESPACE", "t"),
        ("ALTER TABLE {0} IMPORT PARTITION a TABLESPACE", "t"),
    ],
)
def test_a_table_whose_first_rows_are_in_no_log_is_named(tmp_path: Path, statement: str, filled: str) -> None:
    """Its rows come from another table or a file, and no lake table of it can record that."""
    source = DdlSource()
    follower = Follower(source, tmp_path)
    for name in ("t", "u", "other"):
        source.create(name, {"id": "int", "n": "int"})
    empty = {"t", "u"} if "{0}" in statement else {filled}
    for name in sorted({"t", "u", "other"} - empty):
        source.put(name, 1, n=2)
    follower.run()
    source.execute(statement.format("t", "u"), "t", source.tables["t"].columns)
    source.put("other", 2, n=2)
    told = {one.table: one for one in follower.run().ddl if one.instant is None}
    [named] = [one for table, one in told.items() if table.endswith(f".{filled}")]
    assert "no row of the table has come" in named.verdicts[-1]
    assert named.undetermined or named.verdicts[0].startswith("refuse: ")


def test_a_table_whose_definition_is_not_known_stops(tmp_path: Path) -> None:
    source, follower = partitioned(tmp_path)
    source.ddl.clear()
    source.create("t", {"id": "int", "n": "int"})
    source.execute("ALTER TABLE t DROP PARTITION a", "t", {"id": "int", "n": "int"})
    source.put("t", 1, n=1)
    follower.run()
    assert follower.quarantined() == [
        ("ddl_refused", "drop partition a: the table's partition definition is not known")
    ]


def test_a_row_whose_partition_a_collation_decides_stops_the_statement_and_no_other_table(tmp_path: Path) -> None:
    source = DdlSource()
    definition = " PARTITION BY LIST COLUMNS (s) (PARTITION p VALUES IN ('a', 'b'), PARTITION q DEFAULT)"
    for table, texts in (("t", ["a", "A"]), ("u", ["a", "z"])):
        source.create(table, {"id": "int", "s": "varchar(9)"}, options=definition)
        for key, text in enumerate(texts):
            source.put(table, key, s=text)
    follower = Follower(source, tmp_path)
    follower.run()
    for table in ("t", "u"):
        source.execute(f"ALTER TABLE {table} TRUNCATE PARTITION p", table, source.tables[table].columns)
    del source.tables["u"].rows[0]
    told = {one.table: one.error for one in follower.run(fails=True).ddl}
    assert "has the value 'A' depends on a collation that the log does not name" in (told["shop.t"] or "")
    assert told["shop.u"] is None
    follower.check("u")
    assert {row["s"] for row in follower.stored("t").values()} == {"a", "A"}
