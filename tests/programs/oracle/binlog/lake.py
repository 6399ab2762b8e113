"""A lake that ``source.mysql`` feeds from a running server, in this process; its storage dies where that is asked."""

from __future__ import annotations

import contextlib
import json
import random
import re
import shutil
import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

from bench.planted import PASSWORD, USER
from binlake.decode.changes import SourceTable
from binlake.load.first.run import FirstLoad
from binlake.position.ledger import Ledger
from binlake.settings import Settings
from binlake.source.binlog.places import charsets
from binlake.source.database.connection import SourceConnection
from binlake.stream.binlog.run import BinlogStream
from binlake.stream.definitions.schemas import SchemaRegistry
from binlake.stream.monitoring.progress import ProgressEvent
from demo.truth import TruthTable
from embedded.mariadb import EmbeddedMariaDB
from hudilake.errors import TableStoppedError
from hudilake.storage import Storage, open_storage
from tests.binlake.stream.dying_store import Answer, DyingStore, Fate, Killed, silent_threads

STREAM = "oracle"
_OPTIONS = {"fsync": "false"}
#: Where the stream opens storages.
_OPENED = ("binlake.stream.binlog.run.open_storage", "binlake.stream.definitions.learned.open_storage")
#: A reader ends at the next event or heartbeat, so that quick heartbeats make quick runs.
_HEARTBEAT = ("binlake.source.binlog.dump.HEARTBEAT_S", 0.02)
#: PyMySQL reads all certificates of this machine for each connection, also for one that checks none: half of a run.
_CERTIFICATES = "ssl.SSLContext.load_default_certs"
#: The names of all collations, which a server is asked for once.
_COLLATIONS = "binlake.source.binlog.reading.charsets"
_DATES = frozenset({"date", "datetime", "timestamp"})
_ZERO_END = re.compile(r"\.?0+$")
_CALLS = 160
_ASKED: dict[str, dict[int, tuple[str, int]]] = {}
_NAMES = re.compile(r"`((?:[^`]|``)+)`|(\w+)")


@dataclass
class BinlogLake:
    """A lake of the tables of some databases, from a place of the server's binlog on.

    Args:
        server: whose binlog is read.
        place: the lake's directory.
        tables: patterns of ``database.table``.
        start: as ``source.mysql.start``.
        random: draws sizes of batches, and deaths.
        read: the server's tables, once they were read.
        told: the progress of all batches.
        excluded: patterns of tables that are left out.
        zero_dates: as ``source.zero_dates``.
        statements: those that were run.
        least: the fewest events of a batch.
    """

    server: EmbeddedMariaDB
    place: Path
    tables: Sequence[str]
    start: str
    random: random.Random
    excluded: Sequence[str] = ()
    zero_dates: str = "null"
    read: Sequence[TruthTable] = ()
    told: list[ProgressEvent] = field(default_factory=list)
    statements: Sequence[str] = ()
    least: int = 1
    _most: int = 0
    _settings: Settings | None = None

    def __post_init__(self) -> None:
        self._most = max(self.least, self.random.choice((3, 40, 100_000)))

    @property
    def truth(self) -> Sequence[TruthTable]:
        """The server's tables; with ``zero_dates: text`` dates are text."""
        return [_as_text(table) for table in self.read] if self.zero_dates == "text" else self.read

    def settings(self) -> Settings:
        """One stream over all tables."""
        self._settings = self._settings or self._parsed()
        return self._settings

    def _parsed(self) -> Settings:
        database = {"host": self.server.host, "port": self.server.port, "user": USER, "password": PASSWORD}
        document: dict[str, Any] = {
            "name": STREAM,
            "lake": {"uri": str(self.place), "options": _OPTIONS},
            "source": {"database": database, "mysql": {"start": self.start}, "zero_dates": self.zero_dates},
            "tables": {
                "include": list(self.tables),
                "exclude": list(self.excluded),
                "defaults": {"buckets": 2, "compaction": {"after_commits": 4}},
            },
            "locking": {"lock": "process"},  # a lock that a dead process left would name this process, which lives
            "batch": {"trigger_interval_ms": 0, "max_events": self._most},
            "quarantine": {"max_records_per_batch": 100_000, "max_fraction": 1.0},
        }
        return Settings.parse(json.dumps(document))

    def load(self) -> None:
        """Load the tables as they are now."""
        for _ in FirstLoad(self.settings()).run():
            pass

    def apply(self) -> None:
        """A process that carries all that the binlog has into the lake. Raises LakeError."""
        self._run(Fate())

    def die(self) -> bool:
        """A process whose storage dies at a random call, unless it ends before; whether it died."""
        fate = Fate(self.random.randrange(_CALLS), self.random.choice((Answer.LOST, Answer.DONE)))
        try:
            self._run(fate)
        except Killed:
            fate.settle()
            fate.at = -1  # for the heartbeat, whose thread lives on
            (self._state / "run").unlink(missing_ok=True)  # its lease names this process, which lives
            if self.random.random() < 1 / 3:
                shutil.rmtree(self._state, ignore_errors=True)
            return True
        return False

    def _run(self, fate: Fate) -> None:
        settings = self.settings()
        assert settings.source.mysql is not None

        def opened(uri: str, options: dict[str, str] | None = None) -> Storage:
            return DyingStore(open_storage(uri, options), fate)

        with (
            silent_threads(),
            patch(_OPENED[0], opened),
            patch(_OPENED[1], opened),
            patch(*_HEARTBEAT),
            patch(_CERTIFICATES),
            patch(_COLLATIONS, _collations),
        ):
            stream = BinlogStream(settings, settings.source.mysql, self.told.append, threading.Event())
            with contextlib.suppress(TableStoppedError):  # all else is applied, and the comparison names the tables
                stream.run(once=True)

    @property
    def _state(self) -> Path:
        return self.place / ".binlake" / STREAM

    @property
    def schemas(self) -> SchemaRegistry:
        """As a new process learns them from what is stored."""
        registry = SchemaRegistry(self.settings())
        registry.refresh()
        return registry

    def behind(self) -> Iterable[SourceTable]:
        """The tables that could not be brought up to the stream's position."""
        ledger = Ledger.load(open_storage(str(self._state)), STREAM)
        return ledger.behind if ledger is not None else ()

    def columns_ever(self) -> frozenset[str]:
        """All names in the statements: those of columns are among them."""
        return frozenset(
            quoted.replace("``", "`") or bare for text in self.statements for quoted, bare in _NAMES.findall(text)
        )


def _collations(connection: SourceConnection) -> dict[int, tuple[str, int]]:
    """As ``charsets``, which asks no server twice."""
    if connection.place not in _ASKED:
        _ASKED[connection.place] = charsets(connection)
    return _ASKED[connection.place]


def _as_text(table: TruthTable) -> TruthTable:
    """Its dates as text, without the last zeros of a fraction."""
    dates = [column.data_type in _DATES for column in table.columns]
    rows = [
        tuple(
            _ZERO_END.sub("", cell) if is_date and isinstance(cell, str) and "." in cell else cell
            for cell, is_date in zip(row, dates, strict=True)
        )
        for row in table.rows
    ]
    columns = tuple(
        replace(column, type="varchar(40)") if is_date else column
        for column, is_date in zip(table.columns, dates, strict=True)
    )
    return replace(table, columns=columns, rows=rows)
