"""What clauses of ALTER TABLE do to rows that already exist, beyond their definition, without an event in the log."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from binlake.decode.ddl.clauses import (
    ChangeKey,
    Clause,
    ConvertCharset,
    ModifyColumn,
    RenameColumn,
    UnloggedChange,
)
from binlake.decode.ddl.partitions import ChangePartitions
from binlake.decode.ddl.tokens import Token

_AUTO_INCREMENT = "AUTO_INCREMENT"
#: Engines that keep no rows, or have them in another place.
_ELSEWHERE = ("BLACKHOLE", "FEDERATED", "CONNECT", "SPIDER", "EXAMPLE", "MERGE", "MRG_MYISAM", "MRG_MyISAM")
_WAY_OUT = "binlake verify finds them, binlake table resync fetches the rows anew"


def unlogged_changes(tokens: Sequence[Token], clauses: Sequence[Clause], *, ignores: bool) -> Iterator[UnloggedChange]:
    """What an ALTER TABLE changes in rows and the log does not say.

    Args:
        tokens: after the table's name.
        clauses: what they say of columns, key and partitions.
        ignores: whether it is ALTER IGNORE TABLE (MariaDB).
    """
    if ignores and _may_drop_rows(tokens, clauses):
        why = (
            "ALTER IGNORE deletes rows that a key, a check or a partition does not take, and the log does not say which"
        )
        yield UnloggedChange("", f"{why}: {_WAY_OUT}")
    if _are_near(tokens, "DISCARD", "TABLESPACE") or _are_near(tokens, "IMPORT", "TABLESPACE"):
        yield UnloggedChange(
            "", f"rows come and go with a file of the table, and the log does not say which: {_WAY_OUT}"
        )
    for at, token in enumerate(tokens):
        engine = next((one for one in tokens[at + 1 : at + 3] if not one.is_sign("=")), None)
        if token.is_word("ENGINE") and engine is not None and engine.value.upper() in map(str.upper, _ELSEWHERE):
            why = (
                f"a table of {engine.value} keeps its rows nowhere or elsewhere, and the log does not say which it has"
            )
            yield UnloggedChange("", f"{why}: {_WAY_OUT}")
    for clause in clauses:
        column = clause.column if isinstance(clause, ModifyColumn | RenameColumn) else None
        if column is not None and column.computed == _AUTO_INCREMENT:
            why = f"AUTO_INCREMENT gives rows with 0 or null new numbers, and the log does not say which: {_WAY_OUT}"
            yield UnloggedChange(column.name, why)


def _may_drop_rows(tokens: Sequence[Token], clauses: Sequence[Clause]) -> bool:
    changed = any(
        isinstance(one, ModifyColumn | ConvertCharset | ChangePartitions)
        or (isinstance(one, RenameColumn) and one.column is not None)
        or (isinstance(one, ChangeKey) and bool(one.columns))
        for one in clauses
    )
    return changed or any(token.is_word("UNIQUE", "SERIAL", "CHECK") for token in tokens)


def _are_near(tokens: Sequence[Token], first: str, last: str) -> bool:
    """Whether a clause begins with the one word and ends with the other."""
    return bool(tokens) and tokens[0].is_word(first) and any(token.is_word(last) for token in tokens)
