"""The stream's own position: one small file, replaced after the last table of a batch has committed.

It is not what makes the stream exactly-once (every table's commits hold the offsets they cover); it says where to go on
quickly, and shows a gap: records that Spark passed over without anybody having seen them. With the ledger lost, the
start is worked out from the tables' newest commits (``recovery.recover``).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from pipeline.decode.changes import SourceTable
from pipeline.errors import BadInputError, CorruptDataError
from pipeline.position.binlog_height import Heights, heights_from_json, heights_to_json
from pipeline.position.skipped import Skipped
from pipeline.source.ranges import OffsetRange, Positions
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
        topic_ids: what tells each topic from another one of its name.
        skipped: topic -> partition -> [first, end] of the offsets that were gone from Kafka and passed over on demand.
        heights: how far the binlog has come, for each table and topic partition.
        planned: the end that Spark planned for the newest batch, where the batch was cut before it.
        transactions_ms: time of the newest record of the transaction topic that is below ``positions``; 0 if none is.
        transactions_ended: the transactions that ended at that very time.
        torn: transactions that a connector died in, as far as the transaction topic is below ``positions``.
    """

    stream: str
    batch: int = 0
    positions: Positions = field(default_factory=dict)
    behind: dict[SourceTable, Positions] = field(default_factory=dict)
    applied: dict[SourceTable, Positions] = field(default_factory=dict)
    tables: dict[SourceTable, str] = field(default_factory=dict)
    topic_ids: dict[str, str] = field(default_factory=dict)
    skipped: Skipped = field(default_factory=dict)
    heights: Heights = field(default_factory=dict)
    planned: Positions = field(default_factory=dict)
    transactions_ms: int = 0
    transactions_ended: list[str] = field(default_factory=list)
    torn: list[str] = field(default_factory=list)

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
            topic_ids=data.get("topic_ids", {}),
            skipped={t: {int(p): gone for p, gone in ps.items()} for t, ps in data.get("skipped", {}).items()},
            heights=heights_from_json(data.get("heights", ())),
            planned=_positions(data.get("planned", {})),
            transactions_ms=data.get("transactions_ms", 0),
            transactions_ended=data.get("transactions_ended", []),
            torn=data.get("torn", []),
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
            "topic_ids": self.topic_ids,
            "skipped": self.skipped,
            "heights": heights_to_json(self.heights),
            "planned": self.planned,
            "transactions_ms": self.transactions_ms,
            "transactions_ended": self.transactions_ended,
            "torn": self.torn,
        }
        state.write(LEDGER, json.dumps(data, separators=(",", ":")).encode())

    def note_behind(self, table: SourceTable, start: Positions) -> None:
        """Note from where a table must be caught up, unless it is from further back already."""
        noted = self.behind.setdefault(table, {})
        for topic, parts in start.items():
            mine = noted.setdefault(topic, {})
            for partition, offset in parts.items():
                mine[partition] = min(offset, mine.get(partition, offset))

    def note_skipped(self, gone: OffsetRange) -> None:
        """Note offsets that were gone from Kafka before they were read, and are passed over because that was asked."""
        known = self.skipped.setdefault(gone.topic, {}).setdefault(gone.partition, [])
        if [gone.start, gone.end] not in known:
            known.append([gone.start, gone.end])

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
                known = max(mine or 0, self.planned.get(topic, {}).get(partition, 0))
                if mine is not None and start > known:
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
