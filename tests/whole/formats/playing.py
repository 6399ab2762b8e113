"""Histories of tables of every kind, played into a lake as a dump of one format, and what the lake must show then."""

from __future__ import annotations

import dataclasses
import itertools
import json
import random
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any

from binlake.load.replay import quarantine, quarantine_records
from binlake.settings import Settings
from binlake.source.dump_layout import Window
from hudilake.storage import open_storage
from tests.binlake.load.replay.dumped import FORMS, HOUR, Record, replay
from tests.judges.agreement import read_ourselves
from tests.whole.formats.history import Definition, History, Row, Rows, Statement
from tests.whole.formats.render import Form, debezium_ddl
from tests.whole.formats.values import KINDS, WIDE, ZERO

_DAY, _HOURS = "2025-10-09", 9
VERSIONS = "versions"
#: The rules of each table, by its name.
RULES: dict[str, dict[str, Any]] = {
    "keyed": {},
    "parted": {"partition": {"column": "p"}},
    "copied": {"partition": {"column": "p"}, "type": "copy_on_write"},
    "global": {"partition": {"column": "p"}, "index": {"type": "global_simple"}},
    "keyless": {},
    "keyless_parted": {"partition": {"column": "p"}},
    "rekeyed": {"key": ["u"]},
    "pairs": {"partition": {"column": "p"}},
    "summed": {"key": ["g"], "merge": {"engine": "aggregate", "columns": {"n": "sum", "id": "count"}}},
    "partial": {"merge": {"engine": "partial_update"}},
    "first": {"merge": {"engine": "first_row"}},
    "added": {"kind": "append"},
    "versioned": {},
    "rekeying": {},
    "emptied": {"partition": {"column": "p"}},
    "emptied_keyless": {},
}
#: Tables whose rows are not those of the source: no statement comes to them.
_STEADY = ("summed", "partial", "first", "added", "versioned")
_KEYS = {"keyless": (), "keyless_parted": (), "emptied_keyless": (), "pairs": ("id", "u")}
_UNIQUE = {"rekeyed": "u", "rekeying": "u"}
_PARTITIONS = ["int", "varchar(40)", "date", "enum('new','it''s','é')"]


def histories(dice: random.Random, names: Sequence[str], transactions: int) -> dict[str, History]:
    """A history of each table."""
    found = {}
    for name in names:
        columns = {"id": "int", "u": "int", "p": dice.choice(_PARTITIONS), "g": "int", "n": "int"}
        for number, kind in enumerate(dice.sample(list(KINDS), 4)):
            columns[f"c{number}"] = kind
        order = [*columns]
        dice.shuffle(order)
        key = _KEYS.get(name, ("id",))
        nullable = frozenset(n for n in order if n not in ("id", "g", "u") and dice.random() < 0.8)
        definition = Definition(name, {n: columns[n] for n in order}, nullable, key)
        made = History(definition, random.Random(dice.random()), _UNIQUE.get(name))
        made.begin()
        made.transact("c", 2)
        for _ in range(transactions):
            if dice.random() < 0.12 and name not in _STEADY:
                made.alter()
            elif name == "rekeying" and dice.random() < 0.2:
                made.rekey()
            elif name.startswith("emptied") and dice.random() < 0.2:
                made.truncate()
            else:
                made.transact("c" if name == "added" else None)
        found[name] = made
    return found


def in_order(made: dict[str, History], dice: random.Random) -> list[Rows | Statement]:
    """The events of all histories at places of one log."""
    left = [list(history.events) for history in made.values()]
    position, found = 1000, list[Rows | Statement]()
    place: dict[tuple[str, int], int] = {}
    while left := [events for events in left if events]:
        events = dice.choice(left)
        while events:
            event = events.pop(0)
            position += dice.randrange(40, 400)
            if isinstance(event, Statement):
                found.append(dataclasses.replace(event, position=position))
                break
            number = place.setdefault((event.definition.table, event.transaction), len(place))
            found.append(dataclasses.replace(event, position=position, transaction=number))
            if event.last:
                break
    return found


def settings(place: Path, form: Form, names: Sequence[str], commit_bytes: int) -> Settings:
    """The settings of a replay of a format; a commit takes a file, or about so many bytes."""
    topics = [form.topic.format(table=name) for name in names]
    versioned = "versioned" in names
    document: dict[str, Any] = {
        "name": "shop",
        "lake": {"uri": str(place / "lake"), "options": {"fsync": "false"}},
        "kafka": {"bootstrap_servers": "127.0.0.1:1", "topics": list(dict.fromkeys(topics))},
        "source": form.source,
        "tables": {
            "defaults": {"buckets": 2},
            "overrides": [{"match": f"shop.{name}", **RULES[name]} for name in names if RULES[name]],
            "history": [{"table": "shop.versioned", "to": f"shop.{VERSIONS}", "kind": "scd2"}] if versioned else [],
        },
        "dump": {
            "uri": str(place / "dumps"),
            "path": "{topic}/{date}/{hour}/*",
            "options": {"fsync": "false"},
            "commit_bytes": commit_bytes,
        },
    }
    return Settings.parse(json.dumps(document))


@dataclass
class Played:
    """A lake after a replay. ``quarantined``: (value, reason, detail) of each record there; ``unmatched``: deletes of
    tables without a key that found no row of their content."""

    lake: Path
    quarantined: list[tuple[bytes | None, str, str]] = field(default_factory=list)
    unmatched: int = 0

    def rows(self, table: str, columns: Collection[str]) -> Counter[str]:
        """The rows of a table, each as text; only these columns are compared (dropped ones stay in the lake)."""
        path = self.lake / "shop" / table
        rows = read_ourselves(path).to_pylist() if path.exists() else []
        return Counter(_text({name: row[name] for name in columns}) for row in rows)


def _text(row: Row) -> str:
    return repr(sorted((name, _plain(value)) for name, value in row.items()))


def _plain(value: Any) -> Any:  # noqa: ANN401 - any value
    if isinstance(value, Decimal):
        return f"decimal {value.normalize(WIDE)}"
    return value.isoformat() if hasattr(value, "isoformat") else value


def play(
    place: Path,
    form: Form,
    events: list[Rows | Statement],
    names: Sequence[str],
    dice: random.Random,
    *,
    any_order: bool = False,
) -> Played:
    """Write the events as a dump of a format, and replay it in this process. ``any_order``: each of its hours by
    itself, in any order and some twice; changes of one position are in one hour then."""
    records = form.records(events, dice)
    store = open_storage(str(place / "dumps"), {"fsync": "false"})
    places: dict[tuple[str, int], list[Record]] = {}
    written = set[int]()
    for record in records:
        places.setdefault(record[:2], []).append(record)
    for (topic, partition), some in places.items():
        count = dice.randrange(1, min(_HOURS, len(some) + 2))
        cuts = [0, *sorted(dice.sample(range(len(some) + 1), count)), len(some)]
        if any_order:
            cuts = [cut for cut in cuts if cut in (0, len(some)) or some[cut][3] != some[cut - 1][3]]
        for hour, (start, end) in enumerate(itertools.pairwise(cuts)):
            if end > start:
                written.add(hour)
                store.write(f"{topic}/{_DAY}/{8 + hour:02}/{partition}.jsonl", FORMS["a.jsonl"](some[start:end]))
    if form.name == "debezium":
        store.write("_ddl/s.jsonl", FORMS["a.jsonl"](debezium_ddl(events)))
    config = settings(place, form, names, dice.choice([1, 1 << 30]))
    hours = [HOUR + number for number in sorted(written)]
    for hour in dice.sample([*hours, *dice.choices(hours, k=3)], len(hours) + 3) if any_order else []:
        replay(config, Window(hour, hour + 1))
    replay(config)
    if any_order:
        quarantine.replay(config, quarantine_records.QuarantineSelection())
    played = Played(place / "lake")
    path = place / "lake" / "_quarantine" / "shop"
    if path.exists():
        waiting = [row for row in read_ourselves(path).to_pylist() if row["replayed_at"] is None]
        played.quarantined = [(r["value"], r["reason"], r["detail"]) for r in waiting]
    return played


def expected(made: dict[str, History]) -> dict[str, tuple[list[str], Counter[str]]]:
    """Of each lake table, the columns that are compared, and the rows that it must show."""
    found = {}
    for name, history in made.items():
        rows = _SPECIAL[name](history) if name in _SPECIAL else history.rows
        columns = ["g", "n", "id"] if name == "summed" else list(history.definition.columns)
        found[name] = columns, Counter(_text(_in_lake(row, history.definition)) for row in rows)
        if name == "versioned":
            versions = [_in_lake(row, history.definition) | {"is_current": now} for row, now in _versions(history)]
            found[VERSIONS] = [*columns, "is_current"], Counter(map(_text, versions))
    return found


def _in_lake(row: Row, definition: Definition) -> Row:
    return {
        name: value if value is None or name not in definition.columns else definition.kind(name).lake(value)
        for name, value in row.items()
    }


def _first(history: History) -> list[Row]:
    held: dict[int, Row] = {}
    for _, _, after in history.changes:
        if after is not None:
            held.setdefault(after["id"], after)
    return [*held.values()]


def _partial(history: History) -> list[Row]:
    held: dict[int, Row] = {}
    for _, before, after in history.changes:
        if before is not None and (after is None or after["id"] != before["id"]):
            held.pop(before["id"], None)
        if after is not None:
            old = held.get(after["id"], after)
            held[after["id"]] = {n: old[n] if v in (None, ZERO) else v for n, v in after.items()}
    return [*held.values()]


def _summed(history: History) -> list[Row]:
    """Of the columns without a function, none is compared."""
    groups: dict[int, list[Row]] = {}
    for row in history.rows:
        groups.setdefault(row["g"], []).append(row)
    found = []
    for group, rows in groups.items():
        values = [row["n"] for row in rows if row["n"] is not None]
        found.append({"g": group, "n": sum(values) if values else None, "id": len(rows)})
    return found


def _versions(history: History) -> list[tuple[Row, bool]]:
    """Every version of every row, and whether it is the present one. Of one place of the log the last one counts."""
    past, held = list[Row](), dict[int, Row]()
    for event in history.events:
        if isinstance(event, Statement):
            continue
        last: dict[int, Row | None] = {}
        for before, after in event.rows:
            for row, now in ((before, None), (after, after)):
                if row is not None:
                    last[row["id"]] = now
        past += [held.pop(key) for key in last if key in held]
        held |= {key: row for key, row in last.items() if row is not None}
    return [(row, False) for row in past] + [(row, True) for row in held.values()]


_SPECIAL: dict[str, Callable[[History], list[Row]]] = {"first": _first, "partial": _partial, "summed": _summed}
