"""Recorded commits of hudi-rs' writer: ``python -m tests.programs.proofs.turns.recording`` makes them anew.

A recording is a ZIP file: ``before/`` is a small table of ours, ``after/`` what hudi-rs has added to it or changed.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path

from hudilake.policies import TableType
from tests.paths import DATA
from tests.programs.proofs.turns.histories import new_table, rows_of
from tests.programs.proofs.turns.writer import RustWriter

RECORDINGS = DATA / "turns"
#: What binlake has written first.
FIRST = dict.fromkeys(("a", "b", "c", "d"), ("ours", 1))
#: What hudi-rs has made of known keys, and which keys it has added.
KNOWN = {"a": ("theirs", 2), "c": ("theirs", 2)}
NEW = ("n1", "n2", "n3", "n4", "n5")
_TIME = (2026, 1, 1, 0, 0, 0)


def before(name: str, place: Path) -> Path:
    """The root of a recording's table as it was before hudi-rs wrote, unpacked at a place."""
    _unpack(name, "before/", place)
    return place


def add_theirs(name: str, root: Path) -> None:
    """Add what hudi-rs has written."""
    _unpack(name, "after/", root)


def _unpack(name: str, folder: str, place: Path) -> None:
    with zipfile.ZipFile(RECORDINGS / f"{name}.zip") as archive:
        for entry in (one for one in archive.namelist() if one.startswith(folder)):
            path = place / entry.removeprefix(folder)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(archive.read(entry))


def _known(theirs: RustWriter) -> None:
    for key, (text, order) in KNOWN.items():
        _check(theirs.upsert(key, text, order))
    _check(theirs.delete("d"))


def _new(theirs: RustWriter) -> None:
    for key in NEW:
        _check(theirs.upsert(key, "theirs", 2))


def _one(theirs: RustWriter) -> None:
    _check(theirs.upsert("b", "theirs", 2))


def _check(why: str) -> None:
    if why:
        raise SystemExit(f"hudi-rs failed: {why}")


def _record(
    name: str, kind: TableType, write: Callable[[RustWriter], None], *, first: str = "", last: str = ""
) -> None:
    """Record what hudi-rs does.

    Args:
        name: of the recording.
        kind: of the table.
        write: what it does.
        first, last: keys of a commit of ours before hudi-rs' and after it, which it does not see, as if both had
            written at the same time; "" for none.
    """
    with tempfile.TemporaryDirectory() as directory:
        root, copied = Path(directory) / "table", Path(directory) / "copy"
        table = new_table(root, kind)
        table.upsert(rows_of(FIRST))
        shutil.copytree(root, copied)
        known = _files(copied)
        if first:
            table.upsert(rows_of({first: ("ours", 3)}))
        with RustWriter(copied) as theirs:
            write(theirs)
        if last:
            table.upsert(rows_of({last: ("ours", 3)}))
        added = {path: data for path, data in _files(copied).items() if known.get(path) != data}
        started = _files(root)
    RECORDINGS.mkdir(exist_ok=True)
    with zipfile.ZipFile(RECORDINGS / f"{name}.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for folder, files in (("before", started), ("after", added)):
            for path, data in sorted(files.items()):
                archive.writestr(zipfile.ZipInfo(f"{folder}/{path}", _TIME), data, zipfile.ZIP_DEFLATED)


def _files(root: Path) -> Mapping[str, bytes]:
    paths = (path for path in root.rglob("*") if path.is_file() and "locks" not in path.parts)
    return {str(path.relative_to(root)): path.read_bytes() for path in paths}


def main() -> int:
    """Make all recordings."""
    _record("copied_known", "copy_on_write", _known)
    _record("copied_new", "copy_on_write", _new)
    _record("copied_overtaken", "copy_on_write", _one, first="b")
    _record("copied_overtaking", "copy_on_write", _one, last="b")
    _record("merged_known", "merge_on_read", _known)
    _record("merged_new", "merge_on_read", _new)
    return 0


if __name__ == "__main__":
    sys.exit(main())
