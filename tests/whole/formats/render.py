"""What each connector writes of a history, as its documentation and recordings say."""

from __future__ import annotations

import json
import random
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tests.binlake.load.replay.dumped import Record
from tests.whole.formats.history import DATABASE, Definition, Row, Rows, Statement
from tests.whole.formats.values import escaped, typed_json

STAMP = 1_760_000_000_000
FILE = "mysql-bin.000003"
_OPS = {"c": "insert", "u": "update", "d": "delete"}


@dataclass(frozen=True)
class Form:
    """A format as a connector is set up. ``topic``: where its records go; {table} stands for the table.
    ``partitions``: of each topic; a record's key decides, and one without a key goes anywhere."""

    name: str
    topic: str
    source: dict[str, Any]
    nulls: bool = True
    keys: bool = True
    ddl: bool = True
    xoffset: bool = True
    position: bool = True
    flat: bool = False
    partitions: int = 1

    def records(self, events: list[Rows | Statement], dice: random.Random) -> list[Record]:
        """The records, in the order in which the connector writes them."""
        writer = {"debezium": _debezium, "canal": _canal, "maxwell": _maxwell}[self.name]
        found: list[Record] = []
        offsets: dict[tuple[str, int], int] = {}
        for event in events:
            for key, value in writer(self, event, dice):
                place = self.topic.format(table=event.definition.table), self._partition(key, dice)
                offsets[place] = offsets.get(place, -1) + 1
                found.append((*place, offsets[place], _time(event), key, value))
        return found

    def _partition(self, key: bytes | None, dice: random.Random) -> int:
        if self.partitions == 1:
            return 0
        return dice.randrange(self.partitions) if key is None else zlib.crc32(key) % self.partitions


def _time(event: Rows | Statement) -> int:
    """When it happened: each event in a second of its own, for a Maxwell that writes no positions."""
    return STAMP + event.position * 25


def _image(row: Row | None, definition: Definition, form: str) -> Row | None:
    if row is None:
        return None
    return {
        name: None if row[name] is None else getattr(definition.kind(name), form)(row[name])
        for name in definition.columns
    }


_Pair = tuple[bytes | None, bytes | None]


def _debezium(form: Form, event: Rows | Statement, dice: random.Random) -> Iterator[_Pair]:
    if isinstance(event, Statement):
        if event.kind == "TRUNCATE" and not form.flat:
            source = {"db": DATABASE, "table": event.definition.table, "server_id": 1, "snapshot": "false"}
            source |= {"file": FILE, "pos": event.position, "row": 1, "ts_ms": _time(event)}
            yield None, typed_json({"before": None, "after": None, "source": source, "op": "t", "ts_ms": STAMP})
        return
    definition = event.definition
    for number, (before, after) in enumerate(event.rows):
        was, now = _image(before, definition, "debezium"), _image(after, definition, "debezium")
        place = {"file": FILE, "pos": event.position, "row": number, "ts_ms": _time(event)}
        moves = was is not None and now is not None and any(was[n] != now[n] for n in definition.key)
        steps: list[tuple[str, Row | None, Row | None]] = [(event.op, was, now)]
        if moves:
            steps = [("d", was, None), ("c", None, now)]
        for op, one, other in steps:
            row = other if other is not None else one
            assert row is not None
            key = typed_json({n: row[n] for n in definition.key}) if definition.key else None
            if form.flat:
                added = {f"__source_{n}": v for n, v in place.items()} | {"__op": op} if form.position else {}
                yield key, typed_json(row | {"__deleted": "true" if op == "d" else "false"} | added)
            else:
                source = {"db": DATABASE, "table": definition.table, "server_id": 1, "snapshot": "false", **place}
                yield key, typed_json({"before": one, "after": other, "source": source, "op": op, "ts_ms": STAMP})
            if op == "d":
                yield key, None


def debezium_ddl(events: list[Rows | Statement]) -> list[Record]:
    """The records of Debezium's schema change topic."""
    found: list[Record] = []
    for event in events:
        if isinstance(event, Statement) and event.kind != "TRUNCATE":
            definition = event.definition
            source = {"db": DATABASE, "table": definition.table, "server_id": 1, "snapshot": "false"}
            source |= {"file": FILE, "pos": event.position, "row": 0, "ts_ms": _time(event)}
            columns = [_column(definition, name, n) for n, name in enumerate(definition.columns, 1)]
            change = {
                "type": event.kind,
                "id": f'"{DATABASE}"."{definition.table}"',
                "table": {
                    "defaultCharsetName": "utf8mb4",
                    "primaryKeyColumnNames": list(definition.key),
                    "columns": columns,
                },
            }
            document = {"source": source, "ts_ms": STAMP, "databaseName": DATABASE, "ddl": event.sql}
            value = json.dumps(document | {"tableChanges": [change]}).encode()
            found.append(("s", 0, len(found), _time(event), b'{"databaseName":"shop"}', value))
    return found


def _column(definition: Definition, name: str, position: int) -> dict[str, Any]:
    base, _, rest = definition.columns[name].partition("(")
    inner, _, unsigned = rest.rpartition(")")
    numbers = [int(n) for n in inner.split(",")] if inner and inner[0].isdigit() else []
    typed = (base + unsigned).upper()
    options = ["'" + one.replace("'", "''") + "'" for one in definition.kind(name).named.get("enum-values", [])]
    return {
        "name": name,
        "jdbcType": 4,
        "typeName": typed,
        "typeExpression": typed,
        "charsetName": "utf8mb4",
        "length": numbers[0] if numbers else 1 if options else None,
        "scale": numbers[1] if len(numbers) > 1 else None,
        "position": position,
        "optional": name in definition.nullable,
        "autoIncremented": False,
        "generated": False,
        "enumValues": options or None,
    }


def _canal(form: Form, event: Rows | Statement, dice: random.Random) -> Iterator[_Pair]:
    head = {"database": DATABASE, "table": event.definition.table, "es": _time(event), "gtid": "", "id": 7}
    if isinstance(event, Statement):
        none = dict.fromkeys(("data", "old", "mysqlType", "sqlType", "pkNames"))
        yield None, _canal_text(head | none | {"isDdl": True, "sql": event.sql, "ts": STAMP, "type": event.kind})
        return
    definition = event.definition
    data, old, updated = [], [], set[str]()
    for before, after in event.rows:
        was, now = _image(before, definition, "canal"), _image(after, definition, "canal")
        data.append(now if now is not None else was)
        if was is not None and now is not None:
            updated |= {n for n in was if was[n] != now[n]}  # kept from row to row, as Canal's converter does
            old.append({n: v for n, v in was.items() if n in updated})
    rest = {
        "data": data,
        "old": old or None,
        "isDdl": False,
        "mysqlType": dict(definition.columns),
        "sqlType": dict.fromkeys(definition.columns, 12),
        "pkNames": list(definition.key) or None,
        "sql": "",
        "ts": STAMP,
        "type": {"c": "INSERT", "u": "UPDATE", "d": "DELETE"}[event.op],
    }
    yield None, _canal_text(head | rest)


def _canal_text(message: dict[str, Any]) -> bytes:
    return typed_json(dict(sorted(message.items())))


def _maxwell(form: Form, event: Rows | Statement, dice: random.Random) -> Iterator[_Pair]:
    definition = event.definition
    place = {"position": f"{FILE}:{event.position}"} if form.position else {}
    if isinstance(event, Statement):
        if form.ddl and event.kind != "TRUNCATE":
            kind = f"table-{event.kind.lower()}"
            head: dict[str, Any] = {"type": kind, "database": DATABASE, "table": definition.table}
            old = {} if event.before is None else {"old": _maxwell_definition(event.before)}
            told = {"def": _maxwell_definition(definition), "ts": _time(event), "sql": event.sql}
            yield None, typed_json(head | old | told | place)
        return
    for number, (before, after) in enumerate(event.rows):
        was, now = _image(before, definition, "maxwell"), _image(after, definition, "maxwell")
        row = now if now is not None else was
        assert row is not None
        ends = event.last and number == len(event.rows) - 1
        message: dict[str, Any] = {"database": DATABASE, "table": definition.table, "type": _OPS[event.op]}
        message |= {"ts": (_time(event)) // 1000, "xid": event.transaction}
        if ends:
            message["commit"] = True
        elif form.xoffset:
            message["xoffset"] = event.first + number
        message |= place
        if form.keys:
            message["primary_key"] = [row[n] for n in definition.key]
            message["primary_key_columns"] = list(definition.key)
        message["data"] = {n: v for n, v in row.items() if form.nulls or v is not None}
        if was is not None and now is not None:
            changed = {n: v for n, v in was.items() if v != now[n]}
            if changed:
                message["old"] = {n: v for n, v in changed.items() if form.nulls or v is not None}
        key = {"database": DATABASE, "table": definition.table} | {f"pk.{n}": row[n] for n in definition.key}
        yield (
            typed_json(key),
            escaped(message) if not _has_raw(definition) and dice.random() < 0.3 else typed_json(message),
        )


def _has_raw(definition: Definition) -> bool:
    return any(kind.startswith(("json", "decimal")) for kind in definition.columns.values())


def _maxwell_definition(definition: Definition) -> dict[str, Any]:
    columns = [{"name": name, **definition.kind(name).named} for name in definition.columns]
    return {
        "database": DATABASE,
        "charset": "utf8mb4",
        "table": definition.table,
        "columns": columns,
        "primary-key": list(definition.key),
    }


CANAL = Form("canal", "canal", {"format": "canal", "time_zone": "Asia/Shanghai"})
DEBEZIUM = Form("debezium", "s.shop.{table}", {"format": "debezium"})
FLAT = Form("debezium", "s.shop.{table}", {"format": "debezium"}, flat=True)
MAXWELL = Form("maxwell", "maxwell", {"format": "maxwell"})
