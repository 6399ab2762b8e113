"""The known statements of a stream as a history: which lake table each source table's rows belong to, and its names."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence, Set

from binlake.decode.changes import Control, ControlKind, SourceTable
from binlake.decode.ddl.clauses import Action
from binlake.rows.upsert.fanout import destination, histories, part_of
from binlake.rows.upsert.target import merging_of
from binlake.schema.apply.schema_states import KnownSchemas
from binlake.schema.rules.ddl_effects import DatedName, DdlEvent, DdlHistory, place_of
from binlake.schema.rules.entries import DdlEntry
from binlake.schema.rules.shadows import IN_PLACE, ShadowFacts, has_notes, shadowed
from binlake.settings import Settings
from binlake.settings.schema_changes import SchemaChangeSettings
from binlake.source.offsets import topic_suffix
from binlake.tables.lake import Lake
from binlake.tables.names import Feed, LakeName
from hudilake.format.definition.merging import NEWEST


class StatementHistory:
    """The statements that the schemas tell, and those that only the commits of lake tables hold.

    ``events``: the history as of the last ``rebuild``.
    """

    def __init__(self, settings: Settings, lake: Lake, schemas: KnownSchemas) -> None:
        self._settings, self._lake, self._schemas = settings, lake, schemas
        self.events = DdlHistory()
        self._built_from: tuple[int, ...] = ()
        self._topics: set[str] = set()
        self._suffixes: set[str] = set()
        self._taken: set[SourceTable] = set()
        self._in_place: set[tuple[int, str]] = set()
        self._taken_over: set[str] = set()
        self._recorded: dict[tuple[str, str, int | None], int] = {}
        self._known: set[SourceTable] = set()
        self._known_lake: frozenset[SourceTable] = frozenset()

    def rebuild(self, known: Sequence[SourceTable]) -> None:
        """Bring the history up to date. ``known``: the lake tables."""
        renamed: list[DdlEntry] = []
        for source in known:
            table = self._lake.opened(self._settings.table_rules(source).path)
            if table is not None and table.rules.path not in self._taken_over:
                self._taken_over.add(table.rules.path)
                renamed += [entry for entry in table.ddl if entry.renamed is not None]
                self._in_place |= {e.key for e in table.ddl if any(r.text.startswith(IN_PLACE) for r in e.rulings)}
                self._taken |= {name for entry in table.ddl for name in entry.renamed or ()}
                self._recorded |= {(e.place, e.digest, e.seconds): e.order for e in table.ddl}
        self._take_over(renamed)
        self._known_lake = frozenset(known)
        log, sources = self._schemas.ddl, self._schemas.sources() | set(known)
        built_from = (log.revision, len(sources), self.heard, len(self._taken), len(self._in_place))
        if self._built_from != built_from:
            self.events = log.history(
                self._rule_of,
                sources,
                self._recorded,
                self._schemas.versions,
                ShadowFacts(
                    self._rows_come,
                    self._has_rules,
                    self._in_place,
                    self._known_lake,
                    self._rows_came,
                    self._settings.tables.selects,
                ),
                there=self._schemas.sources() if self._settings.tables.fans_out else sources,
                said=self._settings.source.statement_databases,
            )
            self._built_from = built_from
            self._known = sources | self.events.effects.keys()

    @property
    def heard(self) -> int:
        """How many topics are known to exist: a shadow's topic shows that its rows come."""
        return len(self._topics)

    def hear(self, topics: Iterable[str]) -> None:
        """Note that these topics exist."""
        for topic in topics:
            if topic not in self._topics:
                self._topics.add(topic)
                parts = topic.split(".")
                self._suffixes |= {".".join(parts[start:]) for start in range(len(parts))}

    def _rows_come(self, shadow: SourceTable, base: SourceTable) -> bool:
        """Whether the rows of a table's shadow come to a lake table that can take the table's place. Topics tell it
        by their names. Where the table's own topic is not named after it, rows of all tables come together, those of
        a table that no statement has made do not."""
        tables = self._settings.tables
        if tables.leaves_out(shadow) or not self._can_be_taken_over(base):
            return False
        if shadow in self._taken or topic_suffix(shadow) in self._suffixes:
            return True
        return topic_suffix(base) not in self._suffixes and shadow in self._schemas.sources()

    def _rows_came(self, names: Collection[SourceTable], identity: SourceTable, new: SourceTable) -> bool:
        """Whether rows of a renamed table can have come under one of its former names: it has a lake table, or a topic
        is named after it, or topics are not named after tables."""
        if destination(identity, self._settings.tables) in self._known_lake:
            return True
        return topic_suffix(new) not in self._suffixes or any(topic_suffix(name) in self._suffixes for name in names)

    def _can_be_taken_over(self, base: SourceTable) -> bool:
        """Whether another lake table can go on for a table's: one that keeps no more than the table's own rows."""
        tables = self._settings.tables
        rules = self._settings.table_rules(destination(base, tables))
        return rules.kind == "upsert" and merging_of(rules) == NEWEST and part_of(base, tables) is None

    def _take_over(self, renamed: Iterable[DdlEntry]) -> None:
        """Take over renamings that only commit records hold: their statements came among data that was read before, or
        are in no topic any more. The parts of a statement are recorded in no order: what they come to is taken over."""
        statements: dict[int, list[DdlEntry]] = {}
        for entry in renamed:
            statements.setdefault(entry.order, []).append(entry)
        for order, entries in statements.items():
            known = {event.digest for event in self._schemas.ddl.events if event.order == order}
            news = [entry for entry in entries if entry.digest not in known]
            if news and not known:
                text, digests = renaming(net_renames(news)), sorted({entry.digest for entry in news})
                first = news[0]
                event = DdlEvent(order, first.seconds, first.place, text, "", digests[0])
                self._schemas.ddl.add(event, digests[1:])

    def _rule_of(self, source: SourceTable) -> SchemaChangeSettings:
        return self._settings.table_rules(destination(source, self._settings.tables)).schema_changes

    def learn(self, controls: Iterable[Control]) -> bool:
        """Take in statements that came among the data; True if any was new."""
        log, revision = self._schemas.ddl, self._schemas.ddl.revision
        for control in controls:
            if control.kind is ControlKind.DDL:
                database = (control.origin or control.source).database
                log.add(DdlEvent(control.order, None, place_of(control.order), control.text, database))
        return log.revision > revision

    def names_of(self, source: SourceTable) -> set[SourceTable]:
        """All names under which rows of a lake table come."""
        tables = self._settings.tables
        names = {
            name
            for name, meanings in self.events.names.items()
            for one in meanings
            if one.identity is not None and destination(one.identity, tables) == source
        }
        return names | {origin for origin in self.events.effects if destination(origin, tables) == source} | {source}

    def names(self, mine: Set[SourceTable]) -> list[LakeName]:
        """Those of the lake tables ``mine`` whose names have changed, as the statements tell it that are known now."""
        tables, names = self._settings.tables, []
        for origin, called in self.events.called.items():
            source = destination(origin, tables)
            if source in mine and tables.selects(origin) and part_of(origin, tables) is None:
                history = tuple(DatedName(destination(one.name, tables), one.place) for one in called)
                path = self._settings.table_rules(source).path
                names.append(LakeName(path, source, history, origin in self.events.gone))
        return names

    def feeds(self) -> list[Feed]:
        """The source tables that had several names, are gone, or are not determined."""
        tables, events, feeds = self._settings.tables, self.events, []
        for origin in {*events.called, *events.gone, *events.unsure}:
            if tables.selects(origin):
                path = self._settings.table_rules(destination(origin, tables)).path
                names = tuple(events.called.get(origin, (DatedName(origin),)))
                feeds.append(Feed(path, origin, names, events.gone.get(origin), events.unsure.get(origin, "")))
        return feeds

    def unsure(self) -> dict[SourceTable, str]:
        """The lake tables whose names the statements do not determine, and why."""
        tables = self._settings.tables
        return {destination(o, tables): why for o, why in self.events.unsure.items() if tables.selects(o)}

    def origins(self, source: SourceTable) -> list[SourceTable]:
        """The source tables with statements, by their first names, whose rows go to a lake table."""
        tables = self._settings.tables
        return [o for o in self.events.effects if tables.selects(o) and destination(o, tables) == source]

    def ends_of(self, source: SourceTable) -> dict[int, int]:
        """The DROP TABLEs that end all versions of a history table: ordering value -> milliseconds, 0 for no time."""
        tables = self._settings.tables
        ends: dict[int, int] = {}
        for origin, effects in self.events.effects.items():
            if tables.selects(origin) and source in (destination(origin, tables), *histories(origin, tables)):
                ends |= {
                    effect.event.order: (effect.event.seconds or 0) * 1000
                    for effect in effects
                    if effect.action is Action.DROP
                }
        return ends

    def shadows_of(self, topics: Iterable[str]) -> set[SourceTable]:
        """The tables of schema change tools whose rows are ignored: the known ones, and those of these topics."""
        shadows = set(self.events.shadows)
        for topic in topics:
            parts = topic.split(".")
            if len(parts) > 2:
                source = SourceTable(parts[-2], parts[-1])
                base = shadowed(source)
                if base is not None and base in self._known and self._is_left_out(source, base):
                    shadows.add(source)
        return shadows

    def _is_left_out(self, source: SourceTable, base: SourceTable) -> bool:
        """Whether rows under such a name are ignored: a tool's own notes, and rows that cannot take the table over."""
        if self._rule_of(base).shadow_tables != "filter" or source in self.events.names or source in self._known_lake:
            return False
        columns = [name for v in self._schemas.versions(source)[-1:] for name, _ in v.columns]
        return has_notes(source, columns) or self._has_rules(source, base) or not self._rows_come(source, base)

    def _has_rules(self, shadow: SourceTable, base: SourceTable) -> bool:
        """Whether a table is left out, routed or ruled by an override, and its shadow would not be by its own name."""
        tables = self._settings.tables
        if not tables.selects(base):
            return True
        its, own = destination(base, tables), destination(shadow, tables)
        if own != shadow or tables.override_of(own) is not None:
            return False
        return its != base or tables.override_of(its) is not None

    def renamed_tables_of(self, topics: Iterable[str]) -> set[SourceTable]:
        """The lake tables of renamed tables whose rows come in these topics."""
        return {destination(identity, self._settings.tables) for identity in self.renamed_of(topics)}

    def renamed_of(self, topics: Iterable[str]) -> set[SourceTable]:
        """The renamed tables, by their first names, whose rows come in these topics."""
        wanted = set(topics)
        renamed = set()
        for source, names in self.events.names.items():
            suffix = topic_suffix(source)
            if any(topic == suffix or topic.endswith(f".{suffix}") for topic in wanted):
                renamed |= {n.identity for n in names if n.identity is not None}
        return renamed


def net_renames(entries: Sequence[DdlEntry]) -> list[tuple[SourceTable, SourceTable]]:
    """What the entries of one statement come to: each table's name before it and after it."""
    renames = []
    for source in sorted({entry.source for entry in entries}, key=str):
        pairs = [entry.renamed for entry in entries if entry.source == source and entry.renamed is not None]
        before = {old for old, _ in pairs} - {new for _, new in pairs}
        after = {new for _, new in pairs} - {old for old, _ in pairs}
        renames += list(zip(sorted(before, key=str), sorted(after, key=str), strict=False))
    return renames


def renaming(pairs: Sequence[tuple[SourceTable, SourceTable]]) -> str:
    """A statement that renames tables all at once, by way of unused names."""
    away = [f"{_quoted(old)} TO `-`.`{number}`" for number, (old, _) in enumerate(pairs)]
    back = [f"`-`.`{number}` TO {_quoted(new)}" for number, (_, new) in enumerate(pairs)]
    return f"RENAME TABLE {', '.join([*away, *back])}"


def _quoted(source: SourceTable) -> str:
    return ".".join("`" + name.replace("`", "``") + "`" for name in (source.database, source.table))
