"""Which names of the settings have matched nothing so far: patterns of tables, and columns of the rules.

A misspelt name does nothing, and nothing else says so: a mask that masks no column, an override that no table takes.
The stream keeps the columns that its sources have shown in a file of the lake, so that commands know them too.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import TypeAlias

from binlake.decode.changes import SourceTable
from binlake.rows.upsert.fanout import destination, part_of
from binlake.settings import Settings, TablesSettings
from binlake.settings.fanout import ShardRule
from binlake.settings.tables import TableSettings
from hudilake.storage import Storage, StorageNotFoundError

#: Source table -> its columns.
Columns: TypeAlias = Mapping[SourceTable, Collection[str]]
_VERSION = 1


@dataclass(frozen=True, slots=True)
class UnmatchedName:
    """A name of the settings that has matched nothing so far. ``where``: its place in the settings file."""

    where: str
    name: str
    what: str

    def __str__(self) -> str:
        return f"{self.where}: {self.name} {self.what}"


def unmatched_tables(settings: Settings, sources: Iterable[SourceTable]) -> Iterator[UnmatchedName]:
    """The patterns that match none of these source tables, or none of the lake tables that they feed."""
    tables, known = settings.tables, list(sources)
    names = [f"{one.database}.{one.table}" for one in known]
    taken = {destination(one, tables) for one in known if tables.selects(one)}

    def check(where: str, pattern: str, found: bool, of: str = "none of the known tables") -> Iterator[UnmatchedName]:
        if not found:
            yield UnmatchedName(where, pattern, f"matches {of}")

    for kind in ("include", "exclude"):
        for pattern in getattr(tables, kind):
            yield from check(f"tables.{kind}", pattern, pattern == "*" or any(fnmatchcase(n, pattern) for n in names))
    for at, route in enumerate(tables.routes):
        yield from check(f"tables.routes[{at}]", route.match, any(route.found_in(name) for name in names))
    for at, stitched in enumerate(tables.stitched):
        for one in stitched.sources:
            found = any(fnmatchcase(name, one.match) for name in names)
            yield from check(f"tables.stitched[{at}].sources.{one.name}", one.match, found)
    for number, history in enumerate(tables.history):
        yield from check(f"tables.history[{number}]", history.table, history.table in names)
    for at, store in enumerate(tables.cells):
        yield from check(f"tables.cells[{at}]", store.source, store.source in names)
    made = {SourceTable(*name.split(".", 1)) for store in tables.cells for name in store.lake_tables}
    made |= {SourceTable(*history.name) for history in tables.history}
    used = {tables.override_of(one) for one in taken | made}
    for at, override in enumerate(tables.overrides):
        yield from check(f"tables.overrides[{at}]", override.match, at in used)


def unmatched_columns(settings: Settings, columns: Columns) -> Iterator[UnmatchedName]:
    """The names of columns in the rules that are no column of any of these source tables that have the rule."""
    matched: dict[tuple[str, str], bool] = {}
    for lake_table, have in _lake_columns(settings.tables, columns).items():
        for where, name, is_there in _named(settings.tables, lake_table):
            matched[where, name] = matched.get((where, name), False) or is_there(have)
    for origin, found in columns.items():
        for where, name in _of_groups(settings.tables, origin):
            matched[where, name] = matched.get((where, name), False) or _has(name)(frozenset(map(str.lower, found)))
    for (where, name), found_any in matched.items():
        if not found_any:
            yield UnmatchedName(where, name, "is no column of the tables with this rule that are known so far")


def _lake_columns(tables: TablesSettings, columns: Columns) -> dict[SourceTable, frozenset[str]]:
    """The columns, in lower case, that the rules of each lake table may name. Tables of stores have columns of their
    own."""
    found: dict[SourceTable, frozenset[str]] = {}
    for origin, names in columns.items():
        if not tables.selects(origin):
            continue
        kept_as, part = destination(origin, tables), part_of(origin, tables)
        rules = tables.rules(kept_as)
        if rules.cells is not None or rules.wide is not None:
            continue
        more = [name for name, _ in rules.columns.computed] if rules.columns is not None else []
        more += [part.column] if isinstance(part, ShardRule) else []
        more += [column for group in rules.groups for column, _ in (*group.key, *(group.columns or ()))]
        found[kept_as] = found.get(kept_as, frozenset()) | {name.lower() for name in (*names, *more)}
    return found


_Test: TypeAlias = Callable[[frozenset[str]], bool]


def _named(tables: TablesSettings, lake_table: SourceTable) -> Iterator[tuple[str, str, _Test]]:
    """The columns that the rules of a lake table name: where, the name, and whether given columns (lower case) have
    it."""
    at = tables.override_of(lake_table)
    override = tables.overrides[at] if at is not None else None

    def rule(name: str) -> tuple[str, TableSettings]:
        if override is not None and name in override.model_fields_set:
            return f"tables.overrides[{at}].{name}", override
        return f"tables.defaults.{name}", tables.defaults

    where, given = rule("key")
    yield from ((where, name, _has(name)) for name in given.key or ())
    where, given = rule("partition")
    if given.partition is not None:
        yield f"{where}.column", given.partition.column, _has(given.partition.column)
    where, given = rule("columns")
    for kind in ("include", "exclude"):
        for pattern in getattr(given.columns, kind):
            if pattern != "*":
                yield f"{where}.{kind}", pattern, _matches(pattern)
    yield from ((f"{where}.mask", name, _has(name)) for name in given.columns.mask)
    where, given = rule("merge")
    yield from ((f"{where}.columns", name, _has(name)) for name in given.merge.columns)
    yield from ((f"{where}.track", name, _has(name)) for name in given.merge.track or ())
    yield from ((f"{where}.track_except", name, _has(name)) for name in given.merge.track_except or ())
    where, given = rule("metadata")
    partition = rule("partition")[1].partition
    made = {partition.field.lower()} if partition is not None else frozenset[str]()
    yield from ((f"{where}.columns", name, _has(name, made)) for name in given.metadata.columns or ())
    for kind in ("clustering", "compaction"):
        where, given = rule(kind)
        order = getattr(given, kind).order_by
        yield from ((f"{where}.order_by.columns", name, _has(name, made)) for name in (order.columns if order else ()))


def _of_groups(tables: TablesSettings, origin: SourceTable) -> Iterator[tuple[str, str]]:
    """The columns of a source table that its group of a stitched table names; expressions are no names."""
    name = f"{origin.database}.{origin.table}"
    for at, stitched in enumerate(tables.stitched):
        for one in stitched.sources:
            if fnmatchcase(name, one.match):
                where = f"tables.stitched[{at}].sources.{one.name}"
                yield from ((f"{where}.key", column) for column in one.key or stitched.key)
                yield from ((f"{where}.columns", text) for text in (one.columns or {}).values() if text.isidentifier())
                return


def _has(name: str, besides: Collection[str] = ()) -> _Test:
    return lambda have: name.lower() in have or name.lower() in besides


def _matches(pattern: str) -> _Test:
    return lambda have: any(fnmatchcase(name, pattern.lower()) for name in have)


def known_columns(settings: Settings, root: Storage) -> dict[SourceTable, frozenset[str]]:
    """The columns that the stream's sources have shown, and those of ``source.schemas``. Raises StorageError."""
    declared = {tuple(name.split(".", 1)): one for name, one in settings.source.schemas.items() if "." in name}
    found = {SourceTable(*name): frozenset(one.columns) for name, one in declared.items()}
    for table, names in _read(root, settings.name).items():
        found[table] = found.get(table, frozenset()) | names
    return found


@dataclass
class ShownColumns:
    """Keeps the columns that a stream's sources have shown, and says which names match none of them."""

    settings: Settings
    root: Storage
    _known: dict[SourceTable, frozenset[str]] | None = None
    _returned: set[UnmatchedName] = field(default_factory=set)

    def keep(self, shown: Columns) -> tuple[UnmatchedName, ...]:
        """Take in the columns of a batch. Returns the names that match nothing, each once. Raises StorageError."""
        known = self._known if self._known is not None else _read(self.root, self.settings.name)
        more = {table: known.get(table, frozenset()) | frozenset(names) for table, names in shown.items()}
        grown = {**known, **more}
        if self._known == grown:
            return ()
        if grown != known:
            tables = sorted([t.database, t.table, sorted(names)] for t, names in grown.items())
            document = {"version": _VERSION, "tables": tables}
            self.root.write(_path(self.settings.name), json.dumps(document, ensure_ascii=False).encode())
        self._known = grown
        found = [one for one in unmatched_columns(self.settings, grown) if one not in self._returned]
        self._returned.update(found)
        return tuple(found)


def _read(root: Storage, stream: str) -> dict[SourceTable, frozenset[str]]:
    """The stored columns; none if there is no such file, or it cannot be read: the stream writes it again."""
    try:
        document = json.loads(root.read(_path(stream)))
        if document["version"] != _VERSION:
            return {}
        return {SourceTable(database, table): frozenset(names) for database, table, names in document["tables"]}
    except (StorageNotFoundError, ValueError, KeyError, TypeError):
        return {}


def _path(stream: str) -> str:
    return f".binlake/{stream}/columns.json"
