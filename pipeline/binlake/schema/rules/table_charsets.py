"""The character sets of text columns that statements define and that name none."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from binlake.decode.changes import SourceTable
from binlake.decode.ddl.clauses import DEFAULT_CHARSET, Action, TableEffect, in_charset
from binlake.decode.ddl.columns import ColumnDefinition
from binlake.decode.ddl.default_charsets import table_default
from binlake.decode.types.mysql_types import UNDETERMINED_CHARSET, charset_of, parse_type, without_charset
from binlake.schema.rules.ddl_effects import DdlEvent, VersionsOf


def taking_all(column: ColumnDefinition, *, strict: bool) -> ColumnDefinition:
    """The column as one whose character set has every character of its values, if no log says which it is. ``strict``:
    whether the session of the statement refuses a value that loses a character."""
    if not strict or charset_of(column.type_text) != UNDETERMINED_CHARSET:
        return column
    text = without_charset(column.type_text)
    return replace(column, type_text=text, type=parse_type(text))


@dataclass
class TableCharsets:
    """The character sets that statements give to tables by default. A connector does not take in all of them: it misses
    CREATE TABLE ... COLLATE, and ALTER TABLE ... CHARACTER SET beside other clauses (measured with Debezium 3.4)."""

    _given: dict[SourceTable, str] = field(default_factory=dict)

    def completed(
        self, event: DdlEvent, effects: Sequence[TableEffect], versions_of: VersionsOf
    ) -> tuple[TableEffect, ...]:
        """The effects of a statement with the character sets of the columns that it defines. The record tells them,
        else the statements about the table, else its definition after it. Call it in the order of statements.

        Args:
            event, effects: the statement, and what it does to tables.
            versions_of: the definitions of a table.
        """
        for number, effect in enumerate(effects):
            self._note(effect, event.text, alters=not number)
        return tuple(
            replace(one, clauses=in_charset(one.clauses, self._charset_of(event, one, effects, versions_of)))
            if one.clauses
            else one
            for one in effects
        )

    def _note(self, effect: TableEffect, text: str, *, alters: bool) -> None:
        """``alters``: an ALTER TABLE names the table of its first effect before all others."""
        source = effect.source
        if effect.action is Action.RENAME and effect.to is not None:
            self._set(effect.to, self._given.pop(source, None))
        elif effect.action is Action.DROP:
            self._given.pop(source, None)
        elif effect.action is Action.CREATE:
            like = effect.like
            self._set(source, table_default(text) if like is None else self._given.get(like))
        elif effect.action is Action.ALTER and alters and (named := table_default(text)) is not None:
            self._set(source, named)

    def _set(self, source: SourceTable, charset: str | None) -> None:
        """Note a default; that of a database is not known."""
        if charset is None or charset == DEFAULT_CHARSET:
            self._given.pop(source, None)
        else:
            self._given[source] = charset

    def _charset_of(
        self, event: DdlEvent, effect: TableEffect, effects: Sequence[TableEffect], versions_of: VersionsOf
    ) -> Callable[[str], str | None]:
        """The character set of a column, by its name."""
        called = [effect.source, *(one.to for one in effects if one.source == effect.source and one.to is not None)]
        given = event.charset or next((self._given[name] for name in called if name in self._given), None)
        if given is not None:
            return lambda name: given
        after = [v for name in called for v in versions_of(name) if v.since == event.order and v.columns]
        charsets = {name.lower(): charset_of(kind.text) for name, kind in after[-1].columns} if after else {}
        return lambda name: charsets.get(name.lower())
