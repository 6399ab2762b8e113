"""Dumps written, dumps replayed, quarantined records replayed."""

from __future__ import annotations

import contextlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from binlake.load.replay import quarantine as replay_quarantine
from binlake.load.replay.dump import STATE
from binlake.load.replay.quarantine_records import QuarantineSelection
from binlake.rows.upsert import keyless
from binlake.settings import Settings
from binlake.source.dump_layout import Window
from hudilake.read.slice import read_table
from hudilake.storage import Storage, open_storage
from tests.binlake.load.replay.dumped import HOUR, replay, settings
from tests.binlake.load.replay.test_dump import Records, dump_once, in_files, some
from tests.binlake.load.replay.test_replay import check, dumped
from tests.binlake.stream.dying_store import DyingStore
from tests.binlake.stream.soundness import errors_in
from tests.binlake.stream.test_exactly_once import EXPECTED
from tests.binlake.stream.topic_log import COLUMNS, LocalEngine, TopicLog, event
from tests.programs.crash_points.story import Place, stream

LAYOUT = "{database}.{table}/dt={date}/hour={hour}/*"


@dataclass
class DumpReplay:
    """Two hours of dump files, or the second of them, replayed; on local disk. ``dumps``: where the files lie.
    ``defaults``: rules of the tables."""

    dumps: Path
    into_nothing: bool
    defaults: Mapping[str, Any] = field(default_factory=dict)

    @property
    def _window(self) -> Window:
        return Window() if self.into_nothing else Window(HOUR + 1)

    def _settings(self, place: Place) -> Settings:
        assert place.path is not None
        rules: dict[str, Any] = {"buckets": 2, **self.defaults}
        if not self.into_nothing:
            rules["compaction"] = {"mode": "inline", "after_commits": 2}
        dump = {"path": LAYOUT, "base_files_from_rows": 2 if self.into_nothing else None}
        return settings(place.path, self.dumps, dump=dump, tables={"defaults": rules}, locking={"lock": "process"})

    def prepare(self, place: Place) -> None:
        dumped(self.dumps)
        place.open().write("empty", b"")
        if not self.into_nothing:
            replay(self._settings(place), Window(HOUR, HOUR + 1))

    def do(self, place: Place, root: Storage) -> None:
        replay(self._settings(place), self._window, root=root)

    def trouble(self, place: Place) -> list[str]:
        assert place.path is not None
        with _told() as found:
            check(place.path)
        return found

    def go_on(self, place: Place) -> list[str]:
        assert place.path is not None
        again = replay(self._settings(place), self._window).taken
        found = [f"taken again: {again}"] if again else []
        found += self.trouble(place)
        return found + [text for table in EXPECTED for text in errors_in(place.path / "shop" / table)]


@contextlib.contextmanager
def _told() -> Iterator[list[str]]:
    """A failed assertion becomes text."""
    found: list[str] = []
    try:
        yield found
    except AssertionError as error:
        found.append(str(error))


@dataclass
class Dump:
    """Records of topics written to dump files."""

    source: Records = field(default_factory=lambda: Records(some(count=12)))

    def prepare(self, place: Place) -> None:
        place.open().write(f"{STATE}/empty", b"")

    def do(self, place: Place, root: Storage) -> None:
        place.open().delete(
            f"{STATE}/shop/run"
        )  # the lease of a process that is gone: this one, which played it, lives
        dump_once(self._settings(place), self.source, root)

    def _settings(self, place: Place) -> Settings:
        kafka = {
            "bootstrap_servers": "127.0.0.1:1",
            "topics": ["s.shop.orders", "s.shop.accounts"],
            "ddl_topics": ["ddl"],
        }
        dump = {"path": f"{LAYOUT}.jsonl", "options": dict(place.options), "roll_bytes": 200}
        return settings(f"{place.uri}-lake", place.uri, dump=dump, kafka=kafka)

    def trouble(self, place: Place) -> list[str]:
        assert place.path is not None
        found, wanted = in_files(place.path), Counter(self.source.held)
        return [] if found == wanted else [f"too many {found - wanted}, missing {wanted - found}"]

    def go_on(self, place: Place) -> list[str]:
        place.open().delete(f"{STATE}/shop/position.json")  # the names of the files tell the same
        self.do(place, place.open())
        return self.trouble(place)


@dataclass
class QuarantineReplay:
    """Five equal rows in a table without a key. The delete of one of them and another row come from quarantine: a
    delete that was applied twice would take a second row along."""

    def prepare(self, place: Place) -> None:
        log = _log()
        runner = stream(place, place.open(), _keyless_settings(place, known=True))
        runner.run(0, log[0].end(), 0, LocalEngine(log[0]))
        runner.close()
        runner = stream(place, place.open(), _keyless_settings(place, known=False))
        runner.run(1, log[1].end(), 0, LocalEngine(log[1]))
        runner.close()

    def do(self, place: Place, root: Storage) -> None:
        place.open().delete(".binlake/shop/replay/run")  # of a process that is gone
        fate = root.fate if isinstance(root, DyingStore) else None
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(keyless, "WINDOW", 1)
            if fate is not None:
                patch.setattr(replay_quarantine, "open_storage", lambda *a: DyingStore(open_storage(*a), fate))
            done = replay_quarantine.replay(_keyless_settings(place, known=True), QuarantineSelection())
        for error in done.errors.values():
            raise error

    def trouble(self, place: Place) -> list[str]:
        parts = read_table(place.open().sub("shop/a"), ["owner"])
        owners = sorted(r["owner"] for part in parts for r in part.to_pylist())
        return [] if owners == ["other", *["same"] * 4] else [f"owners are {owners}"]

    def go_on(self, place: Place) -> list[str]:
        waiting = replay_quarantine.replay(_keyless_settings(place, known=True), QuarantineSelection()).selected
        return [*self.trouble(place), *([f"{waiting} records wait"] if waiting else [])]


def _log() -> tuple[TopicLog, TopicLog]:
    """The first batch's records, and all of them."""
    logs = TopicLog(), TopicLog()
    row = {"id": 1, "owner": "same", "balance": "AfQ=", "region": "eu"}
    for log in logs:
        for pos in range(5):
            log.add("s.shop.a", event("a", "c", 100 + pos, row), None)
    logs[1].add("s.shop.a", event("a", "d", 900, row), None)
    logs[1].add("s.shop.a", event("a", "c", 901, {**row, "owner": "other"}), None)
    return logs


def _keyless_settings(place: Place, *, known: bool) -> Settings:
    document = {
        "name": "shop",
        "lake": {"uri": place.uri, "options": dict(place.options)},
        "kafka": {"bootstrap_servers": "127.0.0.1:1", "topics": ["s.shop.a"]},
        "source": {"schemas": {"shop.a": {"columns": COLUMNS, "key": []}} if known else {}},
        "tables": {"defaults": {"buckets": 2, "compaction": {"mode": "off"}}},
        "locking": {"lock": "process"},
        "quarantine": {"max_fraction": 1.0},
    }
    return Settings.parse(json.dumps(document))
