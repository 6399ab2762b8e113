"""A database that carries out DDL on its own rows and writes what Debezium would: row events, and DDL records apart.

As in MySQL, DDL changes rows without a row event. What a lake table must show at the end is ``rows``. Events carry
their schema where they are ``framed``, and no key where tables are not ``keyed``. Snapshot rows carry a clock that is
``skew_s`` away from the server's. ``connector``: which server it is. Where definitions are ``unspoken``, they come with
the first rows that have them, as from a binlog.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hudi import HudiTableBuilder

from binlake.position.ledger import Ledger
from binlake.settings import Settings
from binlake.source.offsets import Offsets
from binlake.stream.batches.runner import BatchRunner
from binlake.stream.definitions.schemas import SchemaRegistry
from binlake.stream.monitoring.progress import ProgressEvent
from binlake.stream.recovery import recover
from binlake.tables.lake import Lake
from hudilake.storage import Storage, open_storage
from tests.binlake.stream.dying_store import DyingStore, Fate
from tests.binlake.stream.topic_log import LocalEngine, TopicLog, services

FILE = "mysql-bin.000003"
EPOCH_S = 1_760_000_000
Row = dict[str, Any]


@dataclass
class Table:
    """Columns by name with their MySQL types; rows by the value of ``id``, whatever the primary key is."""

    columns: dict[str, str]
    rows: dict[int, Row] = field(default_factory=dict)
    key: tuple[str, ...] = ("id",)


@dataclass
class DdlSource:
    """Tables of database ``shop``. ``ddl``: the DDL records, not delivered until asked for."""

    tables: dict[str, Table] = field(default_factory=dict)
    log: TopicLog = field(default_factory=TopicLog)
    ddl: list[bytes] = field(default_factory=list)
    pos: int = 100
    file: str = FILE
    framed: bool = False
    keyed: bool = True
    skew_s: int = 0
    connector: str = "mysql"
    unspoken: bool = False
    _shown: dict[str, Row | None] = field(default_factory=dict)
    _last: Row = field(default_factory=dict)

    def create(
        self,
        table: str,
        columns: dict[str, str],
        *,
        snapshot: bool = True,
        key: tuple[str, ...] = ("id",),
        options: str = "",
    ) -> None:
        """A table with a column ``id``; made before the connector began, or by a statement."""
        self.tables[table] = Table(dict(columns), key=key)
        body = ", ".join(f"`{name}` {kind}" for name, kind in columns.items())
        primary = f", PRIMARY KEY ({', '.join(key)})" if key else ""
        self.record(f"CREATE TABLE `{table}` ({body}{primary}){options}", [("CREATE", table)], snapshot=snapshot)

    def like(self, table: str, model: str) -> None:
        """CREATE TABLE ... LIKE."""
        self.tables[table] = Table(dict(self.tables[model].columns), key=self.tables[model].key)
        self.record(f"CREATE TABLE `{table}` LIKE `{model}`", [("CREATE", table)])

    def copy(self, table: str, model: str, **values: Any) -> None:  # noqa: ANN401 - any JSON
        """INSERT INTO table SELECT ... FROM model, with these values in the columns that the model lacks."""
        for key, row in self.tables[model].rows.items():
            self.put(table, key, **{n: v for n, v in row.items() if n != "id"}, **values)

    def put(self, table: str, key: int, **values: Any) -> None:  # noqa: ANN401 - any JSON
        """Insert or update a row; columns not given keep their values, or are null."""
        held = self.tables[table]
        before = held.rows.get(key)
        row = {name: values.get(name, (before or {}).get(name)) for name in held.columns} | {"id": key}
        held.rows[key] = row
        moves = before is not None and any(before[name] != row[name] for name in held.key if self.keyed)
        if before is not None and moves:  # as Debezium tells a change of the key
            self.event(table, "d", None, before, key)
            self.pos -= 10
            self.event(table, "c", row, None, key)
        else:
            self.event(table, "c" if before is None else "u", row, before, key)

    def rekey(self, table: str, statement: str, key: tuple[str, ...], columns: dict[str, str] | None = None) -> None:
        """An ALTER TABLE that gives the table this primary key, and these columns if they change."""
        self.tables[table].key = key
        self.execute(statement, table, columns or self.tables[table].columns)

    def delete(self, table: str, key: int) -> None:
        """Delete a row."""
        before = self.tables[table].rows.pop(key)
        self.event(table, "d", None, before, key)

    def execute(self, statement: str, table: str, columns: dict[str, str]) -> None:
        """An ALTER TABLE that leaves these columns; what it does to rows is the caller's to do."""
        self.tables[table].columns = dict(columns)
        self.record(statement, [("ALTER", table)])

    def add(self, table: str, name: str, kind: str, value: Any, clause: str = "") -> None:  # noqa: ANN401 - any JSON
        """ADD COLUMN; ``value``: what rows that are there hold."""
        held = self.tables[table]
        for row in held.rows.values():
            row[name] = value
        self.execute(f"ALTER TABLE `{table}` ADD COLUMN {name} {kind} {clause}", table, held.columns | {name: kind})

    def drop(self, table: str, name: str) -> None:
        """DROP COLUMN."""
        held = self.tables[table]
        for row in held.rows.values():
            row.pop(name, None)
        rest = {n: kind for n, kind in held.columns.items() if n != name}
        self.execute(f"alter table {table} drop {name}", table, rest)

    def rename(self, table: str, old: str, new: str) -> None:
        """RENAME COLUMN."""
        held = self.tables[table]
        for row in held.rows.values():
            row[new] = row.pop(old)
        columns = {new if n == old else n: kind for n, kind in held.columns.items()}
        self.execute(f"ALTER TABLE {table} RENAME COLUMN {old} TO {new}", table, columns)

    def swap(self, table: str, one: str, other: str) -> None:
        """Two columns get each other's name, in one statement."""
        held = self.tables[table]
        for row in held.rows.values():
            row[one], row[other] = row[other], row[one]
        text = f"ALTER TABLE {table} RENAME COLUMN {one} TO {other}, CHANGE {other} {one} {held.columns[other]}"
        self.execute(text, table, held.columns)

    def modify(self, table: str, name: str, kind: str) -> None:
        """MODIFY COLUMN to a type that changes no value."""
        held = self.tables[table]
        self.execute(f"ALTER TABLE {table} MODIFY {name} {kind}", table, held.columns | {name: kind})

    def drop_table(self, table: str) -> None:
        """DROP TABLE."""
        del self.tables[table]
        self.record(f"DROP TABLE `{table}` /* generated by server */", [("DROP", table)])

    def drop_database(self) -> None:
        """DROP DATABASE, with all tables."""
        self.tables.clear()
        self.record("DROP DATABASE `shop`", [])

    def rename_tables(self, *pairs: tuple[str, str]) -> None:
        """RENAME TABLE a TO b, c TO d."""
        for old, new in pairs:
            self.tables[new] = self.tables.pop(old)
        text = ", ".join(f"{old} TO {new}" for old, new in pairs)
        self.record(f"RENAME TABLE {text}", [("ALTER", new) for _, new in pairs if new in self.tables])

    def _source(self, table: str) -> Row:
        self.pos += 10
        return {
            "ts_ms": (EPOCH_S + self.pos) * 1000,
            "snapshot": "false",
            "db": "shop",
            "table": table,
            "server_id": 1,
            "file": self.file,
            "pos": self.pos,
            "row": 0,
            "connector": self.connector,
        }

    def event(self, table: str, op: str, after: Row | None, before: Row | None, key: int, kind: str = "") -> None:
        """A row event, with the table's columns as they are now."""
        self._show(table)
        place = self._source(table)
        if op == "r":
            place |= {"ts_ms": place["ts_ms"] + self.skew_s * 1000, "snapshot": kind}
        value = {"before": before, "after": after, "source": place, "op": op, "ts_ms": 0}
        if self.framed:
            value = {"schema": self._schema(table), "payload": value}
        image = after or before or {}
        names = self.tables[table].key if self.keyed and image else ()
        kafka_key = {name: image[name] for name in names} if names else None
        self.log.add(f"s.shop.{table}", json.loads(json.dumps(value)), kafka_key, key % 2 if names else 0)

    def truncate(self, table: str) -> None:
        """TRUNCATE TABLE: it comes among the data, without a key."""
        self.tables[table].rows.clear()
        self.event(table, "t", None, None, 0)

    def snapshot(self, table: str, kind: str = "incremental") -> None:
        """Every row is read as it is now. ``kind``: "true" for the snapshot with which a connector begins."""
        for key, row in self.tables[table].rows.items():
            self.event(table, "r", row, None, key, kind)

    def _schema(self, table: str) -> Row:
        types = {"int": "int32", "bigint": "int64"}
        columns = self.tables[table].columns.items()
        fields = [{"field": n, "type": types.get(kind, "string"), "optional": True} for n, kind in columns]
        images = [{"field": n, "type": "struct", "optional": True, "fields": fields} for n in ("before", "after")]
        return {"type": "struct", "fields": [*images, {"field": "op", "type": "string"}]}

    def record(self, statement: str, changes: list[tuple[str, str]], *, snapshot: bool = False) -> None:
        """A DDL record. ``changes``: (CREATE, ALTER or DROP, table), with the tables as they are now."""
        source = self._source(changes[0][1] if changes else "") | {"snapshot": "true" if snapshot else "false"}
        told = [
            {"type": kind, "id": f'"shop"."{table}"', "table": self._built_from(kind, table)} for kind, table in changes
        ]
        self._last = source
        self._record(source, statement, [] if self.unspoken else told)

    def _show(self, table: str) -> None:
        """A definition that no row has had holds from the newest statement on."""
        built = self._built_from("ALTER", table)
        if self.unspoken and self._shown.get(table) != built:
            self._shown[table] = built
            self._record(self._last, "", [{"type": "ALTER", "id": f'"shop"."{table}"', "table": built}])

    def _record(self, source: Row, statement: str, changes: list[Row]) -> None:
        record = {"source": source, "databaseName": "shop", "ddl": statement, "tableChanges": changes, "ts_ms": 0}
        self.ddl.append(json.dumps(record).encode())

    def _built_from(self, kind: str, table: str) -> Row | None:
        if kind == "DROP":
            return None
        columns = [{"name": n, "typeName": k, "typeExpression": k} for n, k in self.tables[table].columns.items()]
        return {"columns": columns, "primaryKeyColumnNames": list(self.tables[table].key) if self.keyed else []}


@dataclass
class Follower:
    """A stream over a source, without Spark and Kafka. ``told``: what its batches said. ``fate``: when it dies."""

    source: DdlSource
    place: Path
    sections: dict[str, Any] = field(default_factory=dict)
    told: list[ProgressEvent] = field(default_factory=list)
    delivered: int = 0
    fate: Fate | None = None
    more: dict[str, Any] = field(default_factory=dict)
    routes: list[dict[str, Any]] = field(default_factory=list)
    _runner: BatchRunner | None = None
    _registry: SchemaRegistry | None = None

    def settings(self) -> Settings:
        """One stream over all tables."""
        return Settings.parse(self.document())

    def document(self) -> str:
        """The settings file."""
        tables = {"defaults": {"buckets": 2, **self.sections}, "routes": self.routes}
        document = {
            "name": "shop",
            "lake": {"uri": str(self.place), "options": {"fsync": "false"}},
            "kafka": {"bootstrap_servers": "127.0.0.1:1", "topic_pattern": r"s(\.shop\..*)?"},
            "tables": tables,
            "quarantine": {"max_records_per_batch": 1000, "max_fraction": 1.0},
            **self.more,
        }
        return json.dumps(document)

    def restart(self) -> None:
        """A new process: the DDL topic is read anew as far as it was delivered."""
        if self._runner is not None:
            self._runner.close()
        self._runner = None

    def run(self, *, ddl: int | None = None, share: float = 1.0, fails: bool = False) -> ProgressEvent:
        """Apply what is in the topics now.

        Args:
            ddl: how many DDL records have arrived by then; None for all.
            share: how much of the data has, of each partition.
            fails: whether tables may fail.
        """
        config = self.settings()
        self.delivered = max(self.delivered, len(self.source.ddl) if ddl is None else ddl)
        if self._runner is None or self._registry is None:
            root: Storage = open_storage(str(self.place), {"fsync": "false"})
            root = root if self.fate is None else DyingStore(root, self.fate)
            lake, state = Lake(root), root.sub(".binlake/shop")
            ledger = Ledger.load(state, config.name) or recover(config, root, lake)
            for source in ledger.tables:
                lake.get(config.table_rules(source))
            self._registry = SchemaRegistry(config)
            self._runner = BatchRunner(
                config, lake, state, ledger, self._registry, services(), ends=lambda _: self.source.log.end()
            )
        self._registry.learn(self.source.ddl[: self.delivered])
        stands, end = self._runner.ledger.positions, self.source.log.end()
        on_the_way = (
            (t, p, stands.at(t, p) + round((until - stands.at(t, p)) * share)) for t, p, until in end.places()
        )
        end = Offsets.of_places(on_the_way)
        engine = LocalEngine(self.source.log)
        event = self._runner.run(len(self.told), end, 0, engine)
        self.told.append(event)
        for table in self._runner.ledger.late:
            while table in self._runner.ledger.behind:
                caught_up = self._runner.catch_up(table, engine)
                assert caught_up is not None, event
                self.told.append(caught_up)
        errors = [t.error for t in event.tables if t.error] + [d.error for d in event.ddl if d.error]
        assert fails or errors == []
        return event

    def catch_up(self) -> None:
        """Try the tables that are behind until they are not, stopped ones too, each as often as it goes on."""
        assert self._runner is not None
        for table in self._runner.tables.due():
            while table in self._runner.ledger.behind:
                event = self._runner.catch_up(table, LocalEngine(self.source.log))
                if event is None:
                    break
                self.told.append(event)

    def stored(self, table: str) -> dict[int, Row]:
        """The lake table through hudi-rs, without what Hudi and binlake add."""
        rows = self.all_rows(table)
        assert len({row["id"] for row in rows}) == len(rows)
        return {row["id"]: {n: v for n, v in row.items() if n[0] != "_"} for row in rows}

    def idle(self) -> None:
        """No data comes, but all DDL."""
        assert self._runner is not None
        assert self._registry is not None
        self._registry.learn(self.source.ddl)
        event = self._runner.settle()
        self.told += [event] if event is not None else []
        assert self._runner.settle() is None

    def all_rows(self, table: str) -> list[Row]:
        """The same as a list, whatever the key."""
        batches = HudiTableBuilder.from_base_uri(str(self.place / "shop" / table)).build().read()
        return [row for batch in batches for row in batch.to_pylist()]

    def rows(self, table: str) -> list[Row]:
        """The rows of a table without a key, in the source's columns."""
        names = self.source.tables[table].columns
        return sorted(({n: row.get(n) for n in names} for row in self.all_rows(table)), key=str)

    def check(self, table: str, path: str | None = None) -> None:
        """The lake's rows are the source's, in the source's columns."""
        held = self.source.tables[table]
        stored = self.stored(path or table)
        shown = {key: {n: row.get(n) for n in held.columns} for key, row in stored.items()}
        assert shown == held.rows

    def check_texts(self, table: str) -> None:
        """The same where numbers may be texts in the events: compared as numbers."""
        held = self.source.tables[table]
        stored = self.stored(table)
        shown = {key: {n: _number(row.get(n)) for n in held.columns} for key, row in stored.items()}
        assert shown == {key: {n: _number(v) for n, v in row.items()} for key, row in held.rows.items()}

    def quarantined(self) -> list[tuple[str, str]]:
        """(reason, detail) of what lies in quarantine."""
        path = self.place / "_quarantine" / "shop"
        if not path.exists():
            return []
        found = HudiTableBuilder.from_base_uri(str(path)).build().read()
        return sorted((r["reason"], r["detail"]) for b in found for r in b.to_pylist())

    def verdicts(self) -> list[str]:
        """Every clause's verdict, as the progress told it."""
        return [verdict for event in self.told for ddl in event.ddl for verdict in ddl.verdicts]


def _number(value: Any) -> Any:  # noqa: ANN401 - any cell
    text = str(value)
    return float(text) if text.replace(".", "", 1).isdigit() else value
