"""The input of a backfill as it is given: files, glob patterns, or a query."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fnmatch import fnmatchcase

from binlake.load.backfill.pieces import Place
from binlake.settings import Settings
from binlake.settings.dumps import options_beside
from hudilake.errors import ConfigError
from hudilake.storage import FileInfo, Storage

_QUERY = re.compile(r"\s*(select|with|from)\b", re.IGNORECASE)
_GLOB = re.compile(r"[*?\[]")


class InputForm(StrEnum):
    """The form of an input."""

    PARQUET = "parquet"
    CSV = "csv"
    ARROW = "arrow"
    QUERY = "query"


_ENDINGS = {
    ".parquet": InputForm.PARQUET,
    ".csv": InputForm.CSV,
    ".csv.gz": InputForm.CSV,
    ".arrow": InputForm.ARROW,
    ".feather": InputForm.ARROW,
}


@dataclass(frozen=True)
class Input:
    """An input.

    Args:
        text: as it was given: a path, a glob pattern or a query.
        kind: its form.
        place: the directory of its files; of a query, a place that is not used.
        files: its files, by path; none for a query.
    """

    text: str
    kind: InputForm
    place: Place
    files: tuple[FileInfo, ...] = ()

    @property
    def digest(self) -> str:
        """What tells this input from one that has changed: the files' paths, sizes and times."""
        said = [[file.path, file.size, file.modified_ms] for file in self.files]
        return hashlib.blake2b(json.dumps([self.text, said]).encode(), digest_size=8).hexdigest()


def find_input(settings: Settings, text: str) -> Input:
    """The input that a text names.

    Args:
        settings: of the lake; its storage options are used for files in a store of the same kind.
        text: a file, a glob pattern, a directory, or a query of DuckDB (SELECT, WITH or FROM).

    Raises ConfigError if there is no file, or the files are of several kinds or of none that can be read, StorageError.
    """
    if _QUERY.match(text):
        return Input(text, InputForm.QUERY, Place(""))
    root, pattern = _split(text)
    place = Place(root, options_beside(settings.lake, root))
    files = tuple(sorted(_matching(place.storage(), pattern), key=lambda file: file.path))
    if not files:
        raise ConfigError("there is no such input", do_next="check the path (--from)", path=text)
    kinds = {_kind(file.path) for file in files}
    kind = next(iter(kinds))
    if len(kinds) > 1 or kind is None:
        raise ConfigError(
            f"the input must be of one kind: {', '.join(_ENDINGS)}",
            do_next="give files with one of these endings, or a query that reads them: SELECT ... FROM ...",
            path=text,
            files=", ".join(file.path for file in files[:5]),
        )
    return Input(text, kind, place, files)


def differences(before: Sequence[FileInfo], now: Sequence[FileInfo]) -> list[str]:
    """What differs between the files of two inputs, for people."""
    old, new = ({file.path: file for file in files} for files in (before, now))
    lines = [f"{path} is gone" for path in old.keys() - new.keys()]
    lines += [f"{path} is new" for path in new.keys() - old.keys()]
    for path in old.keys() & new.keys():
        a, b = old[path], new[path]
        if a.size != b.size:
            lines.append(f"{path} had {a.size} bytes and has {b.size}")
        elif a.modified_ms != b.modified_ms:
            lines.append(f"{path} was written again")
    return sorted(lines)


def _split(text: str) -> tuple[str, str]:
    """The longest directory without a pattern, and the path below it."""
    *directories, name = text.split("/")
    first = next((index for index, part in enumerate(directories) if _GLOB.search(part)), len(directories))
    root = "/".join(directories[:first])
    if text.startswith("/") and not root:
        root = "/"
    return root or ".", "/".join([*directories[first:], name])


def _matching(storage: Storage, pattern: str) -> Iterator[FileInfo]:
    if not _GLOB.search(pattern):
        exact_file = storage.stat(pattern) if pattern else None
        if exact_file is not None:
            yield exact_file
        else:
            yield from (file for file in storage.walk(pattern) if _kind(file.path) and not _hidden(file.path))
        return
    parts = pattern.split("/")
    for file in storage.walk(""):
        names = file.path.split("/")
        if len(names) == len(parts) and all(map(fnmatchcase, names, parts)) and not _hidden(file.path):
            yield file


def _kind(path: str) -> InputForm | None:
    return next((kind for ending, kind in _ENDINGS.items() if path.lower().endswith(ending)), None)


def _hidden(path: str) -> bool:
    return path.rsplit("/", 1)[-1].startswith((".", "_"))
