"""Foreign keys by which the server changes rows without an event: InnoDB writes no cascade to the binlog."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from binlake.decode.ddl.tokens import Reader, Token, split_at_commas


@dataclass(frozen=True, slots=True)
class Cascade:
    """A foreign key with actions. ``columns``: of this table. ``parent``: the other table's name. ``actions``: such as
    ``ON DELETE CASCADE``."""

    columns: tuple[str, ...]
    parent: str
    actions: tuple[str, ...]

    @property
    def removes(self) -> bool:
        """Whether rows go with their parent."""
        return "ON DELETE CASCADE" in self.actions


def cascade(tokens: Sequence[Token], column: str | None = None) -> Cascade | None:
    """The foreign key of a table's definition, or of the column's; None if there is none, or it changes no rows.

    ``tokens``: from FOREIGN KEY or the column's type on.
    """
    reader = Reader(tokens)
    columns: tuple[str, ...] = (column,) if column is not None else ()
    if column is None and reader.take("FOREIGN", "KEY"):
        while reader.left and not reader.next.is_sign("("):
            reader.skip()
        columns = tuple(part[0].value for part in split_at_commas(reader.bracketed() or []) if part)
    while reader.left and not reader.take("REFERENCES"):
        reader.skip()
    parent = reader.name() or ""
    while reader.take_sign("."):
        parent = reader.name() or parent
    actions = []
    while reader.left:
        for when in ("DELETE", "UPDATE"):
            if reader.take("ON", when):
                actions += [f"ON {when} {what}" for what in _ACTIONS if reader.take(*what.split())]
                break
        else:
            reader.skip()
    return Cascade(columns, parent, tuple(actions)) if actions and parent else None


_ACTIONS = ("CASCADE", "SET NULL", "SET DEFAULT")
