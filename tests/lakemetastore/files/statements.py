"""Random statements as Spark makes them of calls and of work on files, and what is there after each of them."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
from hive_metastore import ttypes
from thrift.Thrift import TException

KEYS = ("p", "q")
_VALUES = ("1", "2", "a b", "x/y")
_TABLES = ("t", "u", "v")


class Step(msgspec.Struct, frozen=True):
    """A statement and what came of it: the exception's class or nothing, directories and files, and locations."""

    statement: str
    error: str | None
    text: str | None
    tree: tuple[str, ...]
    locations: dict[str, str]


@dataclass(frozen=True)
class Side:
    """A metastore, and the directory in which its warehouse is. ``mark`` is in all names of one sequence."""

    client: Any
    place: Path
    mark: str

    def location(self, path: str) -> str:
        return f"file:{self.place}/{path}"

    def tree(self) -> tuple[str, ...]:
        """Paths below the place, a directory's with a slash."""
        found = (path for path in self.place.rglob("*") if not path.name.endswith(".crc"))
        said = (f"{path.relative_to(self.place)}{'/' if path.is_dir() else ''}" for path in found)
        return tuple(sorted(path for path in said if self.mark in path))

    def locations(self) -> dict[str, str]:
        """The place of every database, table and partition."""
        found = {}
        for database in self.client.get_databases(f"{self.mark}*"):
            found[database] = self.client.get_database(database).locationUri
            for name in self.client.get_all_tables(database):
                table = self.client.get_table(database, name)
                found[f"{database}.{name}"] = table.sd.location
                for part in self.client.get_partitions(database, name, -1) if table.partitionKeys else ():
                    found[f"{database}.{name}{part.values}"] = part.sd.location
        return {name: self._said(location) for name, location in found.items()}

    def step(self, statement: Statement) -> Step:
        error, text = None, None
        try:
            statement.run(self)
        except TException as raised:
            error, text = type(raised).__name__, self._said(getattr(raised, "message", None) or "")
        return Step(str(statement), error, text, self.tree(), self.locations())

    def _said(self, text: str) -> str:
        return re.sub(rf"(file:)?(//)?{re.escape(str(self.place))}", "<place>", text)


@dataclass(frozen=True)
class Statement:
    """A statement: its words, and what a client does for it."""

    words: str
    run: Callable[[Side], object]

    def __str__(self) -> str:
        return self.words


@dataclass(frozen=True)
class Pick:
    """A table by its name, or the one of a number among those that there are; and partitions likewise."""

    name: str
    number: int | None

    def __str__(self) -> str:
        return self.name if self.number is None else f"{self.name}|{self.number}"

    def on(self, side: Side) -> tuple[str, str]:
        found = [self.name]
        if self.number is not None:
            databases = side.client.get_databases(f"{side.mark}*")
            found = [
                f"{one}.{table}" for one in databases for table in sorted(side.client.get_all_tables(one))
            ] or found
        database, _, name = found[(self.number or 0) % len(found)].partition(".")
        return database, name

    def values(self, side: Side, table: Any, others: list[str]) -> list[str]:  # noqa: ANN401 - no types
        """Of a partition that there is, mostly; else others."""
        keys = table.partitionKeys
        found = (
            side.client.get_partitions(table.dbName, table.tableName, -1) if keys and self.number is not None else []
        )
        if not found or (self.number or 0) % 10 == 9:
            return others[: len(keys)]
        values: list[list[str]] = sorted(part.values for part in found)
        return values[(self.number or 0) // 7 % len(found)]


class Statements:
    """Random statements over two databases, three names of tables, and partitions of few values.

    Locations of their own are new ones each time: two owners of one directory are another matter.
    """

    def __init__(self, seed: int, mark: str) -> None:
        self._random = random.Random(seed)
        self._mark = mark
        self._places = 0
        self._files = 0

    def make(self, count: int) -> Iterator[Statement]:
        for database in self._databases():
            yield self._create_database(database, None)
        kinds = self._kinds()
        for _ in range(3):
            yield self._create_table()
        for _ in range(count):
            yield self._random.choices([k for k, _ in kinds], [w for _, w in kinds])[0]()

    def _kinds(self) -> list[tuple[Callable[[], Statement], int]]:
        return [
            (self._create_table, 10),
            (self._insert, 14),
            (self._add_partition, 6),
            (self._rename_table, 8),
            (self._rename_partition, 10),
            (self._drop_partition, 6),
            (self._drop_table, 5),
            (self._set_location, 2),
            (self._set_partition_location, 2),
            (self._append_partition, 2),
            (self._drop_by_names, 3),
            (self._truncate, 4),
            (self._exchange, 5),
            (self._any_database, 2),
            (self._drop_database, 2),
        ]

    def _databases(self) -> list[str]:
        return [f"{self._mark}a", f"{self._mark}b"]

    def _name(self) -> tuple[str, str]:
        return self._random.choice(self._databases()), self._random.choice(_TABLES)

    def _new_place(self, root: str) -> str:
        self._places += 1
        return f"{root}/{self._mark}own/{self._places}"

    def _table(self) -> Pick:
        """Mostly a table that there is."""
        (database, name), number = self._name(), self._random.randrange(1000)
        return Pick(f"{database}.{name}", None if self._random.random() < 0.1 else number)

    def _values(self) -> list[str]:
        return [self._random.choice(_VALUES), self._random.choice(_VALUES)]

    def _any_database(self) -> Statement:
        place = self._random.choice([None, self._new_place("warehouse")])
        return self._create_database(self._random.choice(self._databases()), place)

    def _create_database(self, name: str, place: str | None) -> Statement:
        def run(on: Side) -> None:
            location = on.location(place or f"warehouse/{name}.db")
            on.client.create_database(ttypes.Database(name=name, locationUri=location, parameters={}))

        return Statement(f"CREATE DATABASE {name} {place or ''}", run)

    def _drop_database(self) -> Statement:
        name, cascade = self._random.choice(self._databases()), self._random.random() < 0.6
        return Statement(f"DROP DATABASE {name} {cascade=}", lambda on: on.client.drop_database(name, True, cascade))

    def _create_table(self) -> Statement:
        (database, name), keys = self._name(), self._random.choice([(), ("p",), KEYS, KEYS])
        external = self._random.random() < 0.2
        own = external or self._random.random() < 0.2
        place = self._new_place("out" if external else "warehouse") if own else None

        def run(on: Side) -> None:
            columns = [ttypes.FieldSchema("a", "int", None)]
            parts = [ttypes.FieldSchema(key, "string", None) for key in keys]
            parameters = {"EXTERNAL": "TRUE"} if external else {}
            kind = "EXTERNAL_TABLE" if external else "MANAGED_TABLE"
            sd = _storage(columns, place and on.location(place))
            table = ttypes.Table(tableName=name, dbName=database, sd=sd, partitionKeys=parts, parameters=parameters)
            table.tableType = kind
            on.client.create_table_with_environment_context(table, None)

        words = "EXTERNAL TABLE" if external else "TABLE"
        return Statement(f"CREATE {words} {database}.{name} {keys} {place or ''}", run)

    def _drop_table(self) -> Statement:
        table, data = self._table(), self._random.random() < 0.85
        purge = ttypes.EnvironmentContext({"ifPurge": "TRUE"}) if self._random.random() < 0.3 else None
        return Statement(
            f"DROP TABLE {table} {data=}",
            lambda on: on.client.drop_table_with_environment_context(*table.on(on), data, purge),
        )

    def _rename_table(self) -> Statement:
        picked, (to, new) = self._table(), self._name()

        def run(on: Side) -> None:
            database, name = picked.on(on)
            table = on.client.get_table(database, name)
            table.dbName, table.tableName = to, new
            on.client.alter_table_with_environment_context(database, name, table, None)

        return Statement(f"ALTER TABLE {picked} RENAME TO {to}.{new}", run)

    def _set_location(self) -> Statement:
        picked, place = self._table(), self._new_place("warehouse")

        def run(on: Side) -> None:
            database, name = picked.on(on)
            table = on.client.get_table(database, name)
            table.sd.location = on.location(place)
            on.client.alter_table_with_environment_context(database, name, table, None)

        return Statement(f"ALTER TABLE {picked} SET LOCATION {place}", run)

    def _insert(self) -> Statement:
        """A file in the table's or a partition's directory; Spark adds the partition if there is none."""
        picked, values = self._table(), self._values()
        self._files += 1
        file = f"f{self._files}"

        def run(on: Side) -> None:
            database, name = picked.on(on)
            table = on.client.get_table(database, name)
            if table.partitionKeys:
                part = _partition(table, values[: len(table.partitionKeys)], None)
                on.client.add_partitions_req(ttypes.AddPartitionsRequest(database, name, [part], True))
                table = on.client.get_partition(database, name, part.values)
            place = Path(table.sd.location.removeprefix("file:"))
            place.mkdir(parents=True, exist_ok=True)
            (place / file).write_text(file)

        return Statement(f"INSERT INTO {picked} {values} {file}", run)

    def _add_partition(self) -> Statement:
        picked, values, free = self._table(), self._values(), self._random.random() < 0.5
        place = self._new_place("warehouse") if self._random.random() < 0.4 else None

        def run(on: Side) -> None:
            database, name = picked.on(on)
            table = on.client.get_table(database, name)
            part = _partition(table, values[: len(table.partitionKeys)], place and on.location(place))
            on.client.add_partitions_req(ttypes.AddPartitionsRequest(database, name, [part], free))

        return Statement(f"ALTER TABLE {picked} ADD {values} {place or ''} {free=}", run)

    def _append_partition(self) -> Statement:
        picked, values = self._table(), self._values()

        def run(on: Side) -> None:
            database, name = picked.on(on)
            count = len(on.client.get_table(database, name).partitionKeys)
            on.client.append_partition(database, name, values[:count])

        return Statement(f"append {picked} {values}", run)

    def _rename_partition(self) -> Statement:
        picked, values, to = self._table(), self._values(), self._values()

        def run(on: Side) -> None:
            database, name = picked.on(on)
            table = on.client.get_table(database, name)
            old = picked.values(on, table, values)
            part = on.client.get_partition(database, name, old)
            part.values = to[: len(old)]
            on.client.rename_partition(database, name, old, part)

        return Statement(f"ALTER TABLE {picked} PARTITION {values} RENAME TO {to}", run)

    def _set_partition_location(self) -> Statement:
        picked, values, place = self._table(), self._values(), self._new_place("warehouse")

        def run(on: Side) -> None:
            database, name = picked.on(on)
            table = on.client.get_table(database, name)
            part = on.client.get_partition(database, name, picked.values(on, table, values))
            part.sd.location = on.location(place)
            on.client.alter_partitions_with_environment_context(database, name, [part], None)

        return Statement(f"ALTER TABLE {picked} PARTITION {values} SET LOCATION {place}", run)

    def _drop_partition(self) -> Statement:
        picked, values, by_first = self._table(), self._values(), self._random.random() < 0.4

        def run(on: Side) -> None:
            database, name = picked.on(on)
            table = on.client.get_table(database, name)
            chosen = picked.values(on, table, values)[: 1 if by_first else None]
            for part in on.client.get_partitions_ps_with_auth(database, name, chosen, -1, "", []):
                on.client.drop_partition_with_environment_context(database, name, part.values, True, None)

        return Statement(f"ALTER TABLE {picked} DROP {values} {by_first=}", run)

    def _drop_by_names(self) -> Statement:
        picked, values, free = self._table(), self._values(), self._random.random() < 0.5

        def run(on: Side) -> None:
            database, name = picked.on(on)
            chosen = [part for part in on.client.get_partition_names(database, name, -1) if f"={values[0]}" in part]
            parts = ttypes.RequestPartsSpec(names=[*chosen, *([] if free else ["p=no/q=no"])])
            on.client.drop_partitions_req(ttypes.DropPartitionsRequest(database, name, parts, True, free))

        return Statement(f"drop by names {picked} {values[0]} {free=}", run)

    def _truncate(self) -> Statement:
        picked, values, whole = self._table(), self._values(), self._random.random() < 0.5

        def run(on: Side) -> None:
            database, name = picked.on(on)
            table = on.client.get_table(database, name)
            if table.tableType == "EXTERNAL_TABLE":  # Spark refuses it
                return
            keys = table.partitionKeys
            chosen = [part for part in on.client.get_partition_names(database, name, -1) if f"={values[0]}" in part]
            on.client.truncate_table(database, name, None if whole or not keys else chosen)

        return Statement(f"TRUNCATE {picked} {values} {whole=}", run)

    def _exchange(self) -> Statement:
        picked, other, values = self._table(), self._table(), self._values()
        by_first = self._random.random() < 0.4

        def run(on: Side) -> None:
            (database, name), (to, new) = picked.on(on), other.on(on)
            source, target = on.client.get_table(database, name), on.client.get_table(to, new)
            keys = [key.name for key in source.partitionKeys]
            chosen = picked.values(on, source, values)
            spec = dict(zip(keys[:1] if by_first else keys, chosen, strict=False))
            found = on.client.get_partitions_ps(database, name, [spec.get(k, "") for k in keys], -1) if keys else []
            if any(t.tableType == "EXTERNAL_TABLE" for t in (source, target)) or not _as_meant(
                on, source, target, found
            ):
                return
            on.client.exchange_partitions(spec, database, name, to, new)

        return Statement(f"EXCHANGE {picked} {values} {by_first=} WITH {other}", run)


def _as_meant(on: Side, source: Any, target: Any, partitions: list[Any]) -> bool:  # noqa: ANN401
    """Whether an exchange is one that a real metastore carries out as it is meant: it moves the directory that the
    first values give, wherever the partitions are, and into the other's if there is one."""
    root, first = source.sd.location, partitions[0].values[0] if partitions else ""
    there = on.client.get_partition_names(target.dbName, target.tableName, -1) if target.partitionKeys else []
    below = all(part.sd.location.startswith(f"{root}/p=") for part in partitions)
    name = f"p={first.replace('/', '%2F')}"
    free = not Path(target.sd.location.removeprefix("file:"), name).exists()
    return bool(partitions) and below and free and not any(part.startswith(f"{name}/") for part in there)


def _storage(columns: list[Any], location: str | None) -> Any:  # noqa: ANN401 - the generated classes have no types
    return ttypes.StorageDescriptor(
        cols=columns,
        location=location,
        inputFormat="org.apache.hadoop.hive.ql.io.parquet.MapredParquetInputFormat",
        outputFormat="org.apache.hadoop.hive.ql.io.parquet.MapredParquetOutputFormat",
        serdeInfo=ttypes.SerDeInfo(None, "org.apache.hadoop.hive.ql.io.parquet.serde.ParquetHiveSerDe", {}),
        parameters={},
    )


def _partition(table: Any, values: list[str], location: str | None) -> Any:  # noqa: ANN401
    sd = _storage(table.sd.cols, location)
    return ttypes.Partition(values=values, dbName=table.dbName, tableName=table.tableName, sd=sd, parameters={})
