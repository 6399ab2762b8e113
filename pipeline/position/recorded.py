"""Values that commits record beside offsets: the transaction they end with, and what they replay of a dump."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pipeline.decode.changes import SourceTable
from pipeline.source.dump_layout import DumpFile

#: Of dumps by their root: the hours that were replayed, from the first up to but not including the second.
DumpHours = Mapping[str, list[tuple[int, int]]]


@dataclass(frozen=True, slots=True)
class PassedTransactions:
    """How far the transaction topic was taken.

    Args:
        ms: the time of its newest record, in ms since the epoch; 0 if none was taken.
        ended: the transactions that ended at that very time.
        torn: transactions that a connector died in.
    """

    ms: int = 0
    ended: tuple[str, ...] = ()
    torn: tuple[str, ...] = ()


NO_TRANSACTIONS = PassedTransactions()


@dataclass(frozen=True, slots=True)
class RecordedTransactions:
    """What a commit of whole transactions records.

    Args:
        last: the newest transaction in it; None if the transaction topic brought none.
        split: the batch ends anywhere, because a transaction was overdue.
        passed: how far the transaction topic was taken.
        offsets: of the transaction topic, by partition.
    """

    last: str | None
    split: bool
    passed: PassedTransactions
    offsets: Mapping[int, int]

    def to_text(self) -> str:
        """As JSON."""
        passed = self.passed
        data: dict[str, object] = {"last": self.last, "split": self.split, "torn": passed.torn}
        data |= {"ms": passed.ms, "ended": passed.ended, "offsets": dict(self.offsets)}
        return json.dumps(data, separators=(",", ":"))

    @staticmethod
    def from_text(text: str) -> RecordedTransactions:
        """The reverse of ``to_text``. Raises ValueError, KeyError, TypeError."""
        data = json.loads(text)
        passed = PassedTransactions(data["ms"], tuple(data["ended"]), tuple(data["torn"]))
        offsets = {int(partition): offset for partition, offset in data["offsets"].items()}
        return RecordedTransactions(data["last"], data["split"], passed, offsets)


@dataclass(frozen=True, slots=True)
class RecordedPortion:
    """The portion of a dump that a commit belongs to.

    Args:
        root: the dump's root, a URI.
        name: the same for the same files.
        tables: all tables that the portion has rows for.
        files: its files, with the hour and the identity of each.
        settled: the tables that get no commit of their own.
    """

    root: str
    name: str
    tables: tuple[SourceTable, ...]
    files: tuple[DumpFile, ...]
    settled: tuple[SourceTable, ...] = ()

    def to_text(self) -> str:
        """As JSON."""
        data: dict[str, object] = {
            "from": self.root,
            "portion": self.name,
            "tables": _pairs(self.tables),
            "files": [[file.hour, *file.identity] for file in self.files],
        }
        if self.settled:
            data["settled"] = _pairs(self.settled)
        return json.dumps(data, separators=(",", ":"), ensure_ascii=False)

    @staticmethod
    def from_text(text: str) -> RecordedPortion:
        """The reverse of ``to_text``. Raises ValueError, KeyError, TypeError."""
        data = json.loads(text)
        files = tuple(DumpFile(*file) for file in data["files"])
        return RecordedPortion(
            data["from"], data["portion"], _sources(data["tables"]), files, _sources(data.get("settled", ()))
        )


def _pairs(tables: tuple[SourceTable, ...]) -> list[list[str]]:
    return [[table.database, table.table] for table in tables]


def _sources(pairs: Iterable[tuple[str, str]]) -> tuple[SourceTable, ...]:
    return tuple(SourceTable(database, table) for database, table in pairs)
