"""Values that commits record besides offsets: the last transaction, portions of dumps and backfills, loads, reverts."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from binlake.decode.changes import SourceTable
from binlake.source.database.snapshot import SourcePosition
from binlake.source.dump_layout import DumpFile
from hudilake.errors import ConfigError

#: Root of a dump -> ranges of hours that were replayed; the end of a range is exclusive.
DumpHours = Mapping[str, list[tuple[int, int]]]


@dataclass(frozen=True, slots=True)
class PassedTransactions:
    """How far the transaction topic was read.

    Args:
        ms: the time of the newest record that was read, in ms since the epoch; 0 if none was read.
        ended: the transactions that ended at exactly that time.
        torn: transactions that a connector did not complete because it died.
        ahead: the TRUNCATEs that were read before their transactions, each with its time in ms.
    """

    ms: int = 0
    ended: tuple[str, ...] = ()
    torn: tuple[str, ...] = ()
    ahead: tuple[tuple[str, int], ...] = ()


NO_TRANSACTIONS = PassedTransactions()


@dataclass(frozen=True, slots=True)
class RecordedTransactions:
    """The transaction entries of a commit.

    A binlog is its own transaction topic, with one partition.

    Args:
        last: the newest transaction in it; None if the transaction topic brought none.
        split: whether the batch may end within a transaction, because one was overdue, or because it has a TRUNCATE
            without its transaction or the reverse.
        passed: how far the transaction topic was read.
        offsets: of the transaction topic, by partition.
        after: the same offsets where the commit began: the table had everything before it. None if that is not known,
            because the ledger was lost or the table was behind.
        alone: whether other tables may lack something before ``after``.
        before: the newest transaction before ``after``; None if it is not known.
    """

    last: str | None
    split: bool
    passed: PassedTransactions
    offsets: Mapping[int, int]
    after: Mapping[int, int] | None = None
    alone: bool = False
    before: str | None = None

    def to_text(self) -> str:
        """Returns a JSON object of the fields, those of ``passed`` among them."""
        passed = self.passed
        data: dict[str, object] = {"last": self.last, "split": self.split, "torn": passed.torn}
        data |= {"ms": passed.ms, "ended": passed.ended, "offsets": dict(self.offsets)}
        if self.after is not None:
            data["after"] = dict(self.after)
        data |= {"ahead": passed.ahead} if passed.ahead else {}
        data |= {"alone": True} if self.alone else {}
        data |= {"before": self.before} if self.before is not None else {}
        return json.dumps(data, separators=(",", ":"))

    @staticmethod
    def from_text(text: str) -> RecordedTransactions:
        """The reverse of ``to_text``. Raises ValueError, KeyError, TypeError."""
        data = json.loads(text)
        passed = PassedTransactions(
            data["ms"], tuple(data["ended"]), tuple(data["torn"]), truncates_ahead(data.get("ahead", ()))
        )
        after = _offsets(data["after"]) if "after" in data else None
        return RecordedTransactions(
            data["last"],
            data["split"],
            passed,
            _offsets(data["offsets"]),
            after,
            data.get("alone", False),
            data.get("before"),
        )


def truncates_ahead(pairs: Iterable[tuple[str, int]]) -> tuple[tuple[str, int], ...]:
    """``PassedTransactions.ahead`` as JSON has it."""
    return tuple((str(transaction), int(ms)) for transaction, ms in pairs)


def _offsets(data: Mapping[str, int]) -> dict[int, int]:
    return {int(partition): offset for partition, offset in data.items()}


@dataclass(frozen=True, slots=True)
class RecordedPortion:
    """The portion of a dump that a commit belongs to.

    Args:
        root: the dump's root, a URI.
        name: the portion's name; the same files give the same name.
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
        """Returns a JSON object of the fields, each file as [hour, identity...]; without ``settled`` if it is empty."""
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


@dataclass(frozen=True, slots=True)
class RecordedRepair:
    """A commit that writes rows of the source anew.

    Args:
        position: of the source's binlog at which the rows were read.
        rows: upserts, before rows of one place are merged.
        deletes: stored rows that the source does not have.
    """

    position: str
    rows: int
    deletes: int

    def to_text(self) -> str:
        """Returns a JSON object of the three fields."""
        return json.dumps({"position": self.position, "rows": self.rows, "deletes": self.deletes})

    @staticmethod
    def from_text(text: str) -> RecordedRepair:
        """The reverse of ``to_text``. Raises ValueError, KeyError, TypeError."""
        data = json.loads(text)
        return RecordedRepair(data["position"], data["rows"], data["deletes"])


@dataclass(frozen=True, slots=True)
class RecordedBackfill:
    """The portion of a backfill that a commit holds.

    Args:
        name: of the backfill: the same command has the same name.
        input: digest of what the input was.
        run: one carrying out of the backfill; ``--restart`` begins another one.
        portion: number of the portion, from 0. Portions are committed in their order.
        portions: how many there are.
        group: the column group that the columns belong to.
        columns: the columns that it writes.
    """

    name: str
    input: str
    run: str
    portion: int
    portions: int
    group: str
    columns: tuple[str, ...]

    @property
    def last(self) -> bool:
        """Whether the backfill is done with this commit."""
        return self.portion + 1 >= self.portions

    def to_text(self) -> str:
        """Returns a JSON object of all fields by their names."""
        data = {name: getattr(self, name) for name in self.__slots__}
        return json.dumps(data, separators=(",", ":"), ensure_ascii=False)

    @staticmethod
    def from_text(text: str) -> RecordedBackfill:
        """The reverse of ``to_text``. Raises ValueError, KeyError, TypeError."""
        data = json.loads(text)
        return RecordedBackfill(**{**data, "columns": tuple(data["columns"])})


def backfill_stream(name: str) -> str:
    """The stream name in the commits of a backfill. No stream of the settings can have this name."""
    return f"{name}.backfill"


def repair_stream(name: str) -> str:
    """The stream name in the commits of a repair. No stream of the settings can have this name."""
    return f"{name}.verify"


def load_stream(name: str) -> str:
    """The stream name in the commits of a load. No stream of the settings can have this name."""
    return f"{name}.load"


@dataclass(frozen=True, slots=True)
class RecordedLoad:
    """How far a table is loaded.

    Args:
        position: the oldest one at which rows were read. The table has all changes up to there; rows that a later run
            read may have later ones too.
        definition: a digest of the columns and the key at the source.
        rows: how many were loaded so far.
        after: all rows whose key is less than this one are loaded; its first columns, as the server spells them. None:
            none, or all.
        done: whether all rows are loaded.
        reached: the newest position at which rows were read; None if it is not known, or not all are loaded.
    """

    position: SourcePosition
    definition: str
    rows: int = 0
    after: tuple[str, ...] | None = None
    done: bool = False
    reached: SourcePosition | None = None

    def interrupted(self, path: str) -> ConfigError:
        """What a table says that has some of the source's rows only. ``path``: of the table."""
        return ConfigError(
            f"the first load of the table was interrupted after {self.rows:,} rows",
            do_next="run binlake load again: it goes on from there",
            path=path,
        )

    def to_text(self) -> str:
        """Returns a JSON object of all fields by their names."""
        data = {name: getattr(self, name) for name in self.__slots__} | {"position": self.position.to_json()}
        data["reached"] = self.reached.to_json() if self.reached is not None else None
        return json.dumps(data, separators=(",", ":"), ensure_ascii=False)

    @staticmethod
    def from_text(text: str) -> RecordedLoad:
        """The reverse of ``to_text``. Raises ValueError, KeyError, TypeError."""
        data = json.loads(text)
        after = data["after"]
        if after is not None:
            data["after"] = (after,) if isinstance(after, str) else tuple(map(str, after))  # once one column's text
        reached = data.get("reached")
        data["reached"] = SourcePosition.from_json(reached) if reached is not None else None
        return RecordedLoad(**{**data, "position": SourcePosition.from_json(data["position"])})


def _pairs(tables: tuple[SourceTable, ...]) -> list[list[str]]:
    return [[table.database, table.table] for table in tables]


def _sources(pairs: Iterable[tuple[str, str]]) -> tuple[SourceTable, ...]:
    return tuple(SourceTable(database, table) for database, table in pairs)


#: A record of a revert names so many of its transactions.
NAMED_TRANSACTIONS = 20


@dataclass(frozen=True, slots=True)
class Revert:
    """A revert: changes of the source that a commit has undone in the lake.

    Args:
        instant: the commit.
        what: the selection in words.
        transactions: the ids of the reverted transactions, as far as the events name them; at most 20.
        rows: rows that were set back.
        left: rows with a later change that were left as they are.
        source: where the before images came from.
    """

    instant: str
    what: str
    transactions: tuple[str, ...]
    rows: int
    left: int
    source: str

    def __str__(self) -> str:
        left = f", {self.left} left" if self.left else ""
        return f"{self.instant}: {self.what}: {self.rows} rows set back{left}"


def reverts_to_text(reverts: Iterable[Revert]) -> str:
    """Returns a JSON array with one array for each revert; ``reverts_from_text`` reads it."""
    said = [[r.instant, r.what, r.transactions, r.rows, r.left, r.source] for r in reverts]
    return json.dumps(said, separators=(",", ":"), ensure_ascii=False)


def reverts_from_text(text: str | None) -> tuple[Revert, ...]:
    """The reverse of ``reverts_to_text``; empty for None. Raises ValueError, TypeError."""
    return tuple(Revert(instant, what, tuple(ids), *rest) for instant, what, ids, *rest in json.loads(text or "[]"))
