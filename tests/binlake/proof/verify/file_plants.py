"""Differences planted into the files of a lake table, as a lost file, a faulty writer or a failed copy leaves them.

Each plant has a key of its own. A file group is written anew with its rows as they shall be wrong, or gets a log file
that says something wrong, in commits of the project's own writers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

import pyarrow as pa

from binlake.position.commit_record import CommitRecord
from binlake.proof.verify.places import GroupName
from binlake.rows.upsert.route import KEY, Counts
from binlake.rows.upsert.target import ORDER_FIELD
from binlake.tables.lake_table import LakeTable
from hudilake.format.files.file_group_write import FileGroupWrite, KeyChanges, WriteResult, write_file_group
from hudilake.format.files.first_write import write_base_anew
from hudilake.read.slice import read_file_slice

Row = dict[str, Any]
NOTHING = pa.array([], pa.string())
#: Added to the key column of a row whose record key stays.
FAR = 1_000_000

#: Plants in base files -> what verify must say of the key.
BASE = {
    "lost": "missing",
    "twice": "doubled",
    "three times": "doubled",
    "twice, one stale": "doubled",
    "in another group too": "doubled",
    "changed": "differs",
    "empty, not null": "differs",
    "stale": "differs",
    "revived": "extra",
    "revived twice": "extra",
    "key column changed": "missing",
    "ahead": "ahead",
    "ahead and changed": "ahead",
    "revived, ahead": "extra",
    "twice, one ahead": "doubled",
    "changed, no order": "differs",
    "changed, negative order": "differs",
}
#: Ordering values that no server has reached: of a later epoch, of a later file, and the greatest of all.
AHEAD = (5 << 52, 700_000 << 32, (1 << 63) - 1)
#: Those of tables whose writer computes the file group of a row.
COMPUTED = {"in another group": "misplaced", "other record key": "misplaced"}
PARTITIONED = {"in another partition": "misplaced", "in another partition too": "doubled"}
#: Plants in log files.
LOGS = {
    "changed in a log": "differs",
    "deleted in a log": "missing",
    "revived in a log": "extra",
    "ahead in a log": "ahead",
}
LOGS_COMPUTED = {"in the log of another group too": "doubled"}


@dataclass
class FilePlants:
    """Plants in one table.

    Args:
        table: open for writing.
        random: chooses.
        living: the source has the rows with smaller ids.
        expected: (kind, id) of what verify must find.
    """

    table: LakeTable
    random: Random
    living: int
    expected: list[tuple[str, str]] = field(default_factory=list)

    def rows(self) -> dict[GroupName, list[Row]]:
        """The stored rows by file group."""
        names = [KEY, *self.table.hudi.schema.names]
        pieces = self.table.hudi.file_slices()
        return {(p.partition_path, p.file_id): read_file_slice(self.table.hudi, p, names).to_pylist() for p in pieces}

    def compact(self) -> None:
        """Write every file group anew as it is."""
        self._commit({name: self._anew(rows) for name, rows in self.rows().items()})

    def in_bases(self, whats: Sequence[str], keys: Sequence[int], gone: Sequence[int]) -> None:
        """Plant in base files.

        Args:
            whats: the plants.
            keys: ids of rows that both sides have.
            gone: ids of rows that the source has lost and the lake has not.
        """
        stored = self.rows()
        places = {row["id"]: (name, row) for name, rows in stored.items() for row in rows}
        living, dead = iter(keys), iter(gone)
        for what in whats:
            revived = what.startswith("revived")
            number = next(dead if revived else living)
            name, row = places[number]
            self._plant(stored, what, name, row)
            self.expected.append(({**BASE, **COMPUTED, **PARTITIONED}[what], str(number)))
            if what == "key column changed":
                self.expected.append(("extra", str(number + FAR)))
        left = set(gone) - {int(key) for kind, key in self.expected if kind == "extra"}
        for rows in stored.values():
            rows[:] = [row for row in rows if row["id"] not in left]
        self._commit({name: self._anew(rows) for name, rows in stored.items()})

    def _plant(self, stored: dict[GroupName, list[Row]], what: str, name: GroupName, row: Row) -> None:
        mine = stored[name]
        if what.startswith(("in another", "lost")):
            if not what.endswith("too"):
                mine.remove(row)
            if what != "lost":
                stored[self._other(stored, name, "partition" in what)].append(dict(row))
        elif what in ("twice", "three times", "revived twice"):
            mine += [dict(row) for _ in range(2 if what == "three times" else 1)]
        elif "ahead" in what:
            mine += [dict(row)] if what.startswith("twice") else []
            row["name"] = "ahead" if what == "ahead and changed" else row["name"]
            row[ORDER_FIELD] = self.random.choice(AHEAD)
        elif what.startswith("changed, "):
            row["name"], row[ORDER_FIELD] = "changed", None if what.endswith("no order") else -5
        elif what in ("changed", "stale", "twice, one stale", "empty, not null"):
            before = dict(row)
            mine += [before] if what.startswith("twice") else []
            changed = {"changed": row["name"] + " ", "empty, not null": "", "stale": "old"}
            row["name"] = changed.get(what, "older")
            row[ORDER_FIELD] -= what != "changed"
        elif what == "key column changed":
            row["id"] += FAR
        elif what == "other record key":
            row[KEY] = f"x{row[KEY]}"

    def _other(self, stored: dict[GroupName, list[Row]], name: GroupName, partition: bool) -> GroupName:
        """Another file group, of another partition or of the same; a new one if there is none."""
        new = (name[0], f"{name[1][:-3]}{self.random.randrange(16):x}-7")
        others = [n for n in sorted(stored) if n != name and (n[0] != name[0]) == partition]
        chosen = self.random.choice(others or [new])
        stored.setdefault(chosen, [])
        return chosen

    def lose_a_group(self) -> None:
        """Drop all rows of a file group."""
        stored = self.rows()
        name = self.random.choice(sorted(name for name, rows in stored.items() if rows))
        self.expected += [("missing", str(row["id"])) for row in stored[name] if row["id"] < self.living]
        self._commit({name: self._anew([])})

    def in_logs(self, whats: Sequence[str], keys: Sequence[int], gone: Sequence[int]) -> None:
        """Plant in log files. Arguments as ``in_bases``; rows that the source has lost stay if they are revived."""
        stored = self.rows()
        places = {row["id"]: (name, row) for name, rows in stored.items() for row in rows}
        changes: dict[GroupName, tuple[list[Row], list[Row]]] = {}
        living, dead = iter(keys), iter(gone)
        for what in whats:
            number = next(dead if what.startswith("revived") else living)
            name, row = places[number]
            self.expected.append(({**LOGS, **LOGS_COMPUTED}[what], str(number)))
            if what == "in the log of another group too":
                name = self._other(stored, name, False)
            upserts, deletes = changes.setdefault(name, ([], []))
            if what == "changed in a log":
                upserts.append({**row, "name": "changed"})
            elif what == "ahead in a log":
                upserts.append({**row, ORDER_FIELD: self.random.choice(AHEAD)})
            elif what == "deleted in a log":
                deletes.append(row)
            else:
                upserts.append(row)
        for number in dead:
            name, row = places[number]
            changes.setdefault(name, ([], []))[1].append(row)
        self._commit(
            {name: FileGroupWrite(*name, self._typed(u), self._deletes(d)) for name, (u, d) in changes.items()}
        )

    def delete_ahead(self, number: int) -> None:
        """A log file deletes a row with an ordering value that no server has reached."""
        name, row = next((name, r) for name, rows in self.rows().items() for r in rows if r["id"] == number)
        deletes = self._deletes([{**row, ORDER_FIELD: AHEAD[0]}])
        self._commit({name: FileGroupWrite(*name, None, deletes)})

    def _anew(self, rows: Sequence[Row]) -> pa.Table:
        return pa.Table.from_pylist(list(rows), self._schema).sort_by(KEY)

    @property
    def _schema(self) -> pa.Schema:
        return pa.schema([pa.field(KEY, pa.string()), *self.table.hudi.schema])

    def _typed(self, rows: Sequence[Row]) -> pa.Table | None:
        return self._anew(rows) if rows else None

    def _deletes(self, rows: Sequence[Row]) -> pa.Table | None:
        return self._anew(rows).select([KEY, ORDER_FIELD]) if rows else None

    def _commit(self, groups: dict[GroupName, Any]) -> None:
        """``groups``: all rows of a file group, or a write of a log file."""
        table = self.table
        table.refresh("plants")
        context = table.begin(table.hudi.schema)
        results: list[WriteResult] = []
        for name, rows in sorted(groups.items()):
            if isinstance(rows, FileGroupWrite):
                results.append(write_file_group(table.storage, context, rows))
            else:
                results += write_base_anew(table.storage, context, FileGroupWrite(*name, rows))
        if context.states_keys:  # the index is not told of anything
            nothing = {
                (r.partition_path, r.file_id): KeyChanges(r.partition_path, r.file_id, NOTHING, NOTHING)
                for r in results
            }
            results = [WriteResult(**{**_fields(r), "keys": nothing[r.partition_path, r.file_id]}) for r in results]
        assert table.source is not None
        table.commit(context, results, CommitRecord("plants", 0, Counts(), table.source, table.origin))


def _fields(result: WriteResult) -> dict[str, Any]:
    return {name: getattr(result, name) for name in result.__dataclass_fields__}
