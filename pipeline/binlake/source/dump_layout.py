"""The layout of dumps of change events: directories by table or topic and by hour or day (UTC), from a template.

Files are found by listing the directories of the requested hours only. The directories above them are listed only when
all hours are requested. Programs write a month, a day or an hour below ten with a zero before it (``hour=05``) or
without (Hive's dynamic partitions of a number): both are found.
"""

from __future__ import annotations

import calendar
import contextlib
import itertools
import re
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime
from fnmatch import fnmatchcase

from binlake.settings import DumpSettings, path_name
from hudilake.errors import ConfigError
from hudilake.storage import Storage
from hudilake.storage.paths import join

_PARALLEL_LISTINGS = 8
_PATTERNS: Mapping[str, str] = {
    "date": r"\d{4}-\d{1,2}-\d{1,2}",
    "year": r"\d{4}",
    "month": r"\d{1,2}",
    "day": r"\d{1,2}",
    "hour": r"\d{1,2}",
}
#: Between two numbers nothing tells where one ends.
_JOINED = "}{"
_PADDED = {key: pattern.replace("{1,2}", "{2}") for key, pattern in _PATTERNS.items()}
_PLACEHOLDER = re.compile(r"\{(\w+)\}")
#: Prefixes of temporary files by the conventions of Hadoop and Spark.
_HIDDEN = ("_", ".")
_UNFINISHED = (".tmp", ".inprogress", ".crc", "._COPYING_")


@dataclass(frozen=True, slots=True, order=True)
class DumpFile:
    """A file of a dump: path below the dump's root, its hour (hours since 1970; the first of the day in a layout by
    day), size in bytes, time of the last change (ms), and the database, table and topic where its path has them."""

    hour: int
    path: str
    size: int
    modified_ms: int
    database: str | None = None
    table: str | None = None
    topic: str | None = None

    @property
    def identity(self) -> tuple[str, int, int]:
        """The values that distinguish it from other files, and from other content under the same name."""
        return self.path, self.size, self.modified_ms


@dataclass(frozen=True, slots=True)
class Window:
    """Hours since 1970, from ``first`` up to but not including ``end``; None is open."""

    first: int | None = None
    end: int | None = None

    def __contains__(self, hour: object) -> bool:
        return isinstance(hour, int) and (self.first or 0) <= hour and (self.end is None or hour < self.end)

    def periods(self, step: int) -> list[int] | None:
        """The first hours of its periods of ``step`` hours; None for a window without an end or a beginning."""
        if self.first is None or self.end is None:
            return None
        return list(range(self.first, self.end, step))

    def aligned(self, step: int) -> bool:
        """Whether it consists of whole periods of ``step`` hours."""
        return (self.first or 0) % step == 0 and (self.end or 0) % step == 0


@dataclass(frozen=True)
class DumpLayout:
    """A parsed template of paths."""

    template: str

    @classmethod
    def of(cls, settings: DumpSettings) -> DumpLayout:
        """The layout of the settings."""
        return cls(settings.path)

    @property
    def step(self) -> int:
        """The number of hours in a directory."""
        return 1 if "{hour}" in self.template else 24

    @property
    def _parts(self) -> list[str]:
        return self.template.split("/")[:-1]

    @property
    def pattern(self) -> str:
        """The glob pattern of the files' names."""
        return self.template.rpartition("/")[2]

    def directory(self, topic: str, hour: int) -> str:
        """The directory for records of a topic and an hour in a dump that is written. Names are spelled so that every
        store accepts them, as ``path_name`` does."""
        database, table = split_topic(topic)
        whose = {"database": path_name(database), "table": path_name(table), "topic": safe_topic(topic)}
        spelled = (part.format(**whose, **times(hour)) for part in self._parts)
        return "/".join(
            _shown(name) if part.startswith("{") else name for part, name in zip(self._parts, spelled, strict=True)
        )

    def find(self, storage: Storage, window: Window, hidden: Iterable[str] = ()) -> list[DumpFile]:
        """The files of a window, by hour and path.

        Args:
            storage: the dump's root.
            window: which hours.
            hidden: directories below the root that contain other files.

        Raises ConfigError for a window that splits a directory, and for a directory of a time that no calendar has;
        StorageError.
        """
        if not window.aligned(self.step):
            raise ConfigError(
                "the directories of the dump hold whole days",
                do_next="give whole days: --day, or --since and --until at midnight (UTC)",
                path=self.template,
            )
        periods = window.periods(self.step)
        walk = _Walk(storage, self._parts, window, frozenset(hidden))
        if periods is None:
            places = list(walk.below("", 0, {}))
        else:
            places = [place for hour in periods for place in walk.below("", 0, times(hour))]
        with ThreadPoolExecutor(_PARALLEL_LISTINGS) as pool:
            listed = pool.map(lambda place: list(self._files(storage, *place)), places)
            return sorted({file for files in listed for file in files})

    def has(self, storage: Storage, window: Window, hidden: Iterable[str] = ()) -> bool:
        """Whether there is a file in a window. Arguments and errors as for ``find``."""
        walk = _Walk(storage, self._parts, window, frozenset(hidden))
        return any(True for place in walk.below("", 0, {}) for _ in self._files(storage, *place))

    def _files(self, storage: Storage, directory: str, names: Mapping[str, str]) -> Iterator[DumpFile]:
        hour = _hour(names)
        for info in storage.list(directory):
            name = info.path.rpartition("/")[2]
            if fnmatchcase(name, self.pattern) and not is_hidden(name):
                whose = (names.get(key) for key in ("database", "table", "topic"))
                yield DumpFile(hour, info.path, info.size, info.modified_ms, *whose)


@dataclass(frozen=True)
class _Walk:
    """Walks the directories of a template."""

    storage: Storage
    parts: list[str]
    window: Window
    hidden: frozenset[str]

    def below(self, prefix: str, depth: int, names: Mapping[str, str]) -> Iterator[tuple[str, dict[str, str]]]:
        """(directory, names in its path) of all directories that match the template. Parts whose names are all in
        ``names`` are not listed."""
        if depth == len(self.parts):
            with _naming(prefix):
                is_in = _hour(names) in self.window
            if is_in:
                yield prefix, dict(names)
            return
        part = self.parts[depth]
        asked = set(_PLACEHOLDER.findall(part))
        if asked <= names.keys():
            for spelled in _spelled(part, names):
                yield from self.below(join(prefix, spelled), depth + 1, names)
            return
        pattern = _regex(part, names)
        for name in self.storage.list_dirs(prefix):
            name_match = pattern.fullmatch(name)
            if name_match is None or is_hidden_directory(name) or join(prefix, name) in self.hidden:
                continue
            known = {**names, **name_match.groupdict()}
            with _naming(join(prefix, name)):
                may_be_in = _may_be_in(known, self.window)
            if may_be_in:
                yield from self.below(join(prefix, name), depth + 1, known)


@contextlib.contextmanager
def _naming(directory: str) -> Iterator[None]:
    """Raises ConfigError for a directory whose name has a time that no calendar has: its files would be left out."""
    try:
        yield
    except ValueError:
        raise ConfigError(
            "a directory of the dump has a time in its name that no calendar has",
            do_next="rename it, or move it out of the dump",
            path=directory,
        ) from None


def _regex(part: str, names: Mapping[str, str]) -> re.Pattern[str]:
    patterns = _PADDED if _JOINED in part else _PATTERNS
    pieces, offset, seen = [], 0, set[str]()
    for placeholder in _PLACEHOLDER.finditer(part):
        name = placeholder[1]
        pieces.append(re.escape(part[offset : placeholder.start()]))
        if name in names:
            pieces.append(re.escape(names[name]))
        elif name in seen:
            pieces.append(f"(?P={name})")
        else:
            pieces.append(f"(?P<{name}>{patterns.get(name, '.+?')})")
            seen.add(name)
        offset = placeholder.end()
    return re.compile("".join((*pieces, re.escape(part[offset:]))))


def _may_be_in(names: Mapping[str, str], window: Window) -> bool:
    """Whether a directory with these known names may contain hours of the window. Raises ValueError for a time that no
    calendar has."""
    if "date" in names or {"year", "month", "day"} <= names.keys():
        day = _hour({k: v for k, v in names.items() if k != "hour"})
        return any(hour in window for hour in range(day, day + 24))
    return True


def _hour(names: Mapping[str, str]) -> int:
    date = names.get("date") or f"{names['year']}-{names['month']}-{names['day']}"
    year, month, day = map(int, date.split("-"))
    hour = int(names.get("hour", 0))
    return calendar.timegm(datetime(year, month, day, hour, tzinfo=UTC).timetuple()) // 3600


def times(hour: int) -> dict[str, str]:
    """The values of a template's time placeholders for an hour."""
    moment = datetime.fromtimestamp(hour * 3600, UTC)
    return {
        "date": f"{moment:%Y-%m-%d}",
        "year": f"{moment:%Y}",
        "month": f"{moment:%m}",
        "day": f"{moment:%d}",
        "hour": f"{moment:%H}",
    }


def _spelled(part: str, names: Mapping[str, str]) -> list[str]:
    """The names that a directory may have: the numbers of a time with zeros before them, or without."""
    if _JOINED in part:
        return [part.format(**names)]
    asked = [name for name in dict.fromkeys(_PLACEHOLDER.findall(part)) if name in _PATTERNS]
    forms = [(names[name], "-".join(str(int(number)) for number in names[name].split("-"))) for name in asked]
    chosen = itertools.product(*forms)
    return list(dict.fromkeys(part.format(**{**names, **dict(zip(asked, one, strict=True))}) for one in chosen))


def hour_text(hour: int, step: int = 1) -> str:
    """The text of an hour (``2026-11-21T05``) or, for a step of 24, of a day."""
    moment = datetime.fromtimestamp(hour * 3600, UTC)
    return f"{moment:%Y-%m-%d}" if step == 24 else f"{moment:%Y-%m-%dT%H}"


def split_topic(topic: str) -> tuple[str, str]:
    """(database, table) of a topic with Debezium's naming: the last two parts; any other topic is both."""
    parts = topic.split(".")
    return (parts[-2], parts[-1]) if len(parts) > 1 and all(parts[-2:]) else (topic, topic)


def safe_topic(topic: str) -> str:
    """A topic as part of a path. Kafka's allowed characters are safe, except in a name of dots alone, and except for a
    first character that would hide the file from a replay."""
    return topic.replace(".", "@002e") if not topic.strip(".") else _shown(topic)


def _shown(name: str) -> str:
    """A name of a directory or file, spelled so that it is not hidden: ``_a`` becomes ``@005fa``."""
    return f"@{ord(name[0]):04x}{name[1:]}" if name.startswith(_HIDDEN) else name


def is_hidden_directory(name: str) -> bool:
    """Whether a directory is temporary by convention: ``_temporary``, ``.staging``."""
    return name.startswith(_HIDDEN)


def is_hidden(name: str) -> bool:
    """Whether a file is temporary by convention: ``_SUCCESS``, ``.part-0.crc``, ``part-0.tmp``."""
    return name.startswith(_HIDDEN) or name.endswith(_UNFINISHED)
