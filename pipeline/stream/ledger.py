"""The stream's own position: one small file, replaced after the last table of a batch has committed.

It is not what makes the stream exactly-once (every table's commits hold the offsets they cover); it says where to go on
quickly, and shows a gap: records that Spark passed over without anybody having seen them. With the ledger lost, the
start is worked out from the tables' newest commits (``lake.Lake.positions_from_tables``).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from pipeline.decode.changes import SourceTable
from pipeline.errors import BadInputError, CorruptDataError
from pipeline.source.ranges import Positions
from pipeline.storage import Storage, StorageNotFoundError

LEDGER = "ledger.json"
_VERSION = 1


@dataclass
class Ledger:
    """Where a stream stands.

    Args:
        stream: the stream's name.
        batch: number of batches finished.
        positions: topic -> partition -> next offset; everything below is in the tables.
        behind: tables that could not commit, and from where each must be caught up.
        applied: where each table stood itself when the ledger was saved.
        tables: every table ever seen, and its path below the lake's root.
    """

    stream: str
    batch: int = 0
    positions: Positions = field(default_factory=dict)
    behind: dict[SourceTable, Positions] = field(default_factory=dict)
    applied: dict[SourceTable, Positions] = field(default_factory=dict)
    tables: dict[SourceTable, str] = field(default_factory=dict)

    @staticmethod
    def load(state: Storage, stream: str) -> Ledger | None:
        """The stored ledger, None if there is none. Raises CorruptDataError for one that is not this stream's."""
        try:
            data = json.loads(state.read(LEDGER))
        except StorageNotFoundError:
            return None
        except ValueError as error:
            raise _unusable(state, f"is not JSON: {error}") from error
        if data.get("version") != _VERSION or data.get("stream") != stream:
            raise _unusable(state, f"is of stream {data.get('stream')!r}, version {data.get('version')!r}")
        return Ledger(
            stream=stream,
            batch=data["batch"],
            positions=_positions(data["positions"]),
            behind={_source(name): _positions(p) for name, p in data["behind"].items()},
            applied={_source(name): _positions(p) for name, p in data.get("applied", {}).items()},
            tables={_source(name): path for name, path in data["tables"].items()},
        )

    def save(self, state: Storage) -> None:
        """Replace the stored ledger by this one, whole or not at all."""
        data = {
            "version": _VERSION,
            "stream": self.stream,
            "batch": self.batch,
            "positions": self.positions,
            "behind": {_name(t): p for t, p in self.behind.items()},
            "applied": {_name(t): p for t, p in self.applied.items()},
            "tables": {_name(t): p for t, p in self.tables.items()},
        }
        state.write(LEDGER, json.dumps(data, separators=(",", ":")).encode())

    def note_behind(self, table: SourceTable, start: Positions) -> None:
        """Note from where a table must be caught up, unless it is from further back already."""
        noted = self.behind.setdefault(table, {})
        for topic, parts in start.items():
            mine = noted.setdefault(topic, {})
            for partition, offset in parts.items():
                mine[partition] = min(offset, mine.get(partition, offset))

    def notice_restore(self, table: SourceTable, standing: Positions) -> bool:
        """Note a table as behind that stands further back than when the ledger was saved: it was restored, and what it
        had been given since must be delivered again. A partition it no longer knows is read from offset 0 on.

        Returns whether it was. ``standing``: the stream's positions in the table.
        """
        back: Positions = {}
        for topic, parts in self.applied.get(table, {}).items():
            for partition, offset in parts.items():
                now = standing.get(topic, {}).get(partition, 0)
                if now < offset:
                    back.setdefault(topic, {})[partition] = now
        if back:
            self.note_behind(table, back)
            self.applied[table] = {topic: dict(parts) for topic, parts in standing.items()}
        return bool(back)

    def check_no_gap(self, spark_start: Mapping[str, Mapping[int, int]]) -> None:
        """Raise BadInputError when Spark goes on past records that this stream has not applied."""
        for topic, parts in spark_start.items():
            for partition, start in parts.items():
                mine = self.positions.get(topic, {}).get(partition)
                if mine is not None and start > mine:
                    raise BadInputError(
                        f"Spark's checkpoint goes on at offset {start}, but the tables hold everything only up to "
                        f"{mine}: {start - mine} offsets would be lost",
                        do_next="delete the stream's checkpoint directory: the stream goes on at the ledger's position",
                        topic=topic,
                        partition=partition,
                        spark=start,
                        ledger=mine,
                    )


def _unusable(state: Storage, what: str) -> CorruptDataError:
    return CorruptDataError(
        f"the ledger {what}",
        do_next="check state.uri and name; or delete the file: the position is then worked out from the tables",
        path=f"{state.uri}/{LEDGER}",
    )


def _positions(data: Mapping[str, Mapping[str, int]]) -> Positions:
    return {topic: {int(p): int(o) for p, o in parts.items()} for topic, parts in data.items()}


def _name(source: SourceTable) -> str:
    return json.dumps([source.database, source.table], ensure_ascii=False)


def _source(name: str) -> SourceTable:
    database, table = json.loads(name)
    return SourceTable(database, table)
