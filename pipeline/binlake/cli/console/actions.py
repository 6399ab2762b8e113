"""What a person who has the console's token may do: each action is a command of binlake, shown before it runs.

An action runs as a process of its own, exactly the command line that was shown. Who asked for what, and how it ended,
is kept beside the stream's ledger, an object for each action.
"""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from binlake.settings import Settings
from hudilake.clock import InstantClock, now_ms
from hudilake.errors import ConfigError, LakeError
from hudilake.storage import Storage, open_storage

DIRECTORY = "console"
#: Characters of an action's output that are kept, and records that a page shows.
OUTPUT, RECORDS = 8_000, 50
_SECONDS = 6 * 3600.0


@dataclass(frozen=True, slots=True)
class ActionKind:
    """One thing that can be done to a table.

    Args:
        words: of the command, before the settings file and the table.
        effect: what it changes, for people.
        dry: the words of a command that shows the plan and changes nothing; empty if there is none.
    """

    words: Sequence[str]
    effect: str
    dry: Sequence[str] = ()


KINDS: Mapping[str, ActionKind] = {
    "pause": ActionKind(
        ("table", "pause"),
        "nothing is committed to the table from the next batch on; its records wait in Kafka until it is resumed",
    ),
    "resume": ActionKind(
        ("table", "resume"), "the table goes on from its own position; a stopped table is tried again"
    ),
    "resync": ActionKind(
        ("table", "resync"),
        "Debezium reads the table anew by an incremental snapshot; rows that the source no longer has are deleted",
    ),
    "compact": ActionKind(("compact",), "log files are merged into base files, then the table is cleaned and archived"),
    "cluster": ActionKind(("cluster",), "rows are laid out anew, if the table is due"),
    "savepoint": ActionKind(
        ("savepoint", "create", "--comment", "from the console"), "the newest commit is kept until it is deleted"
    ),
    "verify": ActionKind(("verify",), "nothing: the table is compared with the live source, which is read"),
    "replay": ActionKind(
        ("quarantine", "replay"),
        "quarantined records of the table that can be applied now are applied, in their order",
        ("quarantine", "replay", "--dry-run"),
    ),
}
#: ``resync`` of a stream whose connector takes no signals, or that has none.
_FROM_SOURCE = ActionKind(
    ("table", "resync", "--from-source"),
    "the table is read anew from the source's database; rows that the source no longer has are deleted",
)


def kind_of(action: str, settings: Settings) -> ActionKind:
    """What an action is for the tables of a stream. Raises ConfigError for an action that there is not."""
    if action == "resync" and settings.source.debezium.signal_topic is None:
        return _FROM_SOURCE
    kind = KINDS.get(action)
    if kind is None:
        raise ConfigError("there is no such action", do_next=f"one of {', '.join(KINDS)}", action=action)
    return kind


@dataclass(frozen=True, slots=True)
class ActionRecord:
    """An action that was begun.

    Args:
        name: of the object in the audit log.
        action, table: what was asked, of ``KINDS``, and for which table.
        asked_ms: when, in ms since the epoch.
        by: the address of the browser.
        command: what runs.
        ended_ms: when it ended; None while it runs, or if the console died meanwhile.
        code: its exit code.
        output: the end of what it printed.
    """

    name: str
    action: str
    table: str
    asked_ms: int
    by: str
    command: str
    ended_ms: int | None = None
    code: int | None = None
    output: str = ""


def command_of(kind: ActionKind, conf: str, table: str, *, dry: bool = False) -> list[str]:
    """The words of an action after ``binlake``."""
    words = kind.dry if dry else kind.words
    if words[:2] == ("quarantine", "replay"):  # the table is an option's value
        return [*words, f"--table={table}", "--", conf]
    return [*words, "--", conf, table]


def plan_of(kind: ActionKind, conf: str, table: str) -> str:
    """What a command that changes nothing says of an action; "" if there is none."""
    return _ran(command_of(kind, conf, table, dry=True), 60.0)[1] if kind.dry else ""


def _ran(words: Sequence[str], seconds: float) -> tuple[int, str]:
    """Run a command of binlake. Its exit code, and the end of what it printed."""
    try:
        done = subprocess.run(
            [sys.executable, "-m", "binlake.cli", *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=seconds,
        )
    except subprocess.TimeoutExpired:
        return 124, f"it was ended after {seconds:.0f} s"
    return done.returncode, done.stdout.decode(errors="replace")[-OUTPUT:]


class ActionLog:
    """The actions of one stream: begun one at a time, each with its record beside the ledger.

    Args:
        settings: of the stream.
        conf: its settings file.
    """

    def __init__(self, settings: Settings, conf: str) -> None:
        self._settings, self._conf = settings, conf
        self._storage: Storage = open_storage(settings.state_uri, settings.state_options()).sub(DIRECTORY)
        self._clock = InstantClock()
        self._busy = threading.Lock()

    def begin(self, action: str, table: str, by: str) -> ActionRecord:
        """Begin an action in a thread. Raises ConfigError if another one runs or there is none such, StorageError."""
        words = command_of(kind_of(action, self._settings), self._conf, table)
        if not self._busy.acquire(blocking=False):
            raise ConfigError("another action of this stream is under way", do_next="wait until it has ended")
        try:
            name = f"{self._clock.next()}.json"
            record = ActionRecord(name, action, table, now_ms(), by, " ".join(("binlake", *words)))
            self._storage.create(name, _body(record))
            threading.Thread(target=self._carry_out, args=(record, words), name="console-action", daemon=True).start()
        except BaseException:
            self._busy.release()
            raise
        return record

    def wait(self) -> None:
        """Wait until no action is under way."""
        with self._busy:
            pass

    def newest(self) -> list[ActionRecord]:
        """The newest records, the last one first. Raises StorageError."""
        names = sorted((file.path for file in self._storage.list("")), reverse=True)[:RECORDS]
        return [record for name in names if (record := _record(self._storage.read(name))) is not None]

    def _carry_out(self, record: ActionRecord, words: Sequence[str]) -> None:
        try:
            code, output = _ran(words, _SECONDS)
            ended = replace(record, ended_ms=now_ms(), code=code, output=output)
            self._storage.write(record.name, _body(ended))
        except LakeError:
            return  # the record says that the action was begun, and not how it ended
        finally:
            self._busy.release()


def _body(record: ActionRecord) -> bytes:
    return json.dumps(asdict(record), ensure_ascii=False, indent=1).encode()


def _record(body: bytes) -> ActionRecord | None:
    """A record; None for an object that is none."""
    try:
        fields: dict[str, Any] = json.loads(body)
        return ActionRecord(**fields)
    except (ValueError, TypeError):
        return None
