"""The statements that a lake table's commits record: place, text, verdicts, effect on rows from before.

Such rows may come late, so the effect stays with the table.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from binlake.decode.changes import SourceTable
from binlake.decode.ddl.clauses import Renames
from binlake.schema.rules.judged import ClauseVerdict, KeyChange, Ruling
from binlake.schema.rules.restatement import Restatement
from binlake.schema.rules.steps import Step, step_from_json, step_to_json
from binlake.schema.rules.undetermined import UndeterminedEffect


@dataclass(frozen=True, slots=True)
class DdlEntry:
    """A statement that was judged for the table of ``source`` (its first name).

    ``gone``, ``dropped``: as in ``TableSchemaState``, after it.
    ``refused``: the columns because of which rows are refused after it. ``renamed``: the names of RENAME TABLE.
    ``deleted``: ordering value and time of the DROP TABLE that deletes rows. ``rewrite``: the new key of the table.
    ``renames``: what the statement does to the source's names of columns.
    """

    source: SourceTable
    order: int
    seconds: int | None
    place: str
    digest: str
    statement: str
    rulings: tuple[Ruling, ...]
    steps: tuple[Step, ...] = ()
    texts: tuple[str, ...] = ()
    gone: tuple[str, ...] = ()
    dropped: tuple[int, int | None] | None = None
    refused: tuple[str, ...] = ()
    renamed: tuple[SourceTable, SourceTable] | None = None
    deleted: tuple[int, int | None] | None = None
    rewrite: KeyChange | None = None
    undetermined: tuple[UndeterminedEffect, ...] = ()
    renames: Renames = ()

    @property
    def is_refusal(self) -> bool:
        """Whether it is a refusal, which is judged again because the settings may have changed."""
        return any(ruling.verdict is ClauseVerdict.REFUSE for ruling in self.rulings)

    def restatements(self) -> list[Restatement]:
        """The effects on rows before the statement."""
        deletions = [Restatement(*self.deleted, (), deletes=True)] if self.deleted is not None else []
        return [*deletions, Restatement(self.order, self.seconds, self.steps)] if self.steps else deletions

    @property
    def key(self) -> tuple[int, str]:
        """The key that distinguishes statements."""
        return self.order, self.digest

    def __str__(self) -> str:
        rulings = "; ".join(map(str, self.rulings))
        return f"{self.place} {self.statement}: {rulings}"


def gone_after(entries: Sequence[DdlEntry]) -> frozenset[str]:
    """The lake's columns that the source no longer has after the statements of a table."""
    return frozenset(entries[-1].gone) if entries else frozenset()


def entries_to_text(entries: Iterable[DdlEntry]) -> str:
    """The entries as a commit records them."""
    said = []
    for e in entries:
        item: dict[str, Any] = {
            "source": [e.source.database, e.source.table],
            "order": e.order,
            "seconds": e.seconds,
            "place": e.place,
            "digest": e.digest,
            "statement": e.statement,
            "verdicts": [[ruling.verdict.value, ruling.text] for ruling in e.rulings],
        }
        more: dict[str, Any] = {
            "steps": [step_to_json(step) for step in e.steps],
            "texts": e.texts,
            "gone": e.gone,
            "dropped": e.dropped,
            "refused": e.refused,
            "renamed": e.renamed and [[s.database, s.table] for s in e.renamed],
            "deleted": e.deleted,
            "rewrite": e.rewrite and [list(e.rewrite.columns), e.rewrite.held],
            "undetermined": [[one.column, one.why] for one in e.undetermined],
            "renames": e.renames,
        }
        said.append(item | {name: value for name, value in more.items() if value not in (None, [], ())})
    return json.dumps(said, separators=(",", ":"), ensure_ascii=False)


def entries_from_text(text: str | None) -> tuple[DdlEntry, ...]:
    """The reverse of ``entries_to_text``; empty for None. Raises ValueError, KeyError, TypeError for other text."""
    return tuple(_entry(item) for item in json.loads(text or "[]"))


def _entry(item: dict[str, Any]) -> DdlEntry:
    renamed = item.get("renamed")
    return DdlEntry(
        source=SourceTable(*item["source"]),
        order=item["order"],
        seconds=item["seconds"],
        place=item["place"],
        digest=item["digest"],
        statement=item["statement"],
        rulings=tuple(Ruling(ClauseVerdict(verdict), text) for verdict, text in item["verdicts"]),
        steps=tuple(step_from_json(step) for step in item.get("steps", ())),
        texts=tuple(item.get("texts", ())),
        gone=tuple(item.get("gone", ())),
        dropped=_moment(item.get("dropped")),
        refused=tuple(item.get("refused", ())),
        renamed=(SourceTable(*renamed[0]), SourceTable(*renamed[1])) if renamed else None,
        deleted=_moment(item.get("deleted")),
        rewrite=KeyChange(tuple(item["rewrite"][0]), item["rewrite"][1]) if item.get("rewrite") else None,
        undetermined=tuple(UndeterminedEffect(column, why) for column, why in item.get("undetermined", ())),
        renames=tuple((old, new) for old, new in item.get("renames", ())),
    )


def _moment(said: Sequence[int] | None) -> tuple[int, int | None] | None:
    return (said[0], said[1]) if said is not None else None
