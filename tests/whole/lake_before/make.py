"""Writes the lake that ``test_lake_before`` goes on with: ``python -m tests.whole.lake_before DIRECTORY``.

The files in ``tests/data/lake_before`` were written by the code of the commits that their folders name, with these
modules in the form that code took. Today's code writes such a lake, too; that one would prove nothing.
"""

from __future__ import annotations

import contextlib
import gzip
import json
import shutil
import tarfile
import tempfile
from pathlib import Path
from typing import Any

from binlake.source.offsets import Offsets
from tests.whole.lake_before.log import TimedLog
from tests.whole.lake_before.running import LAKES, Process, configure, rows_of, tables, transactions_of
from tests.whole.lake_before.sequel import dump, go_on
from tests.whole.lake_before.story import Before

ARCHIVE, EVENTS, ROWS = "lakes.tar.gz", "events.json.gz", "rows.json.gz"


def make(target: Path) -> None:
    """Write the archive and its records to a directory."""
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as work:
        place = Path(work) / "before"
        place.mkdir()
        with contextlib.chdir(place):
            records = _records(place, target / ARCHIVE)
    for name, content in zip((EVENTS, ROWS), records, strict=True):
        text = json.dumps(content, separators=(",", ":"), ensure_ascii=False)
        (target / name).write_bytes(gzip.compress(text.encode(), mtime=0))


def _records(place: Path, archive: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """Write the lakes and pack them; the events, and the rows that the tables hold and must hold after them."""
    story = Before(place)
    story.tell()
    sources = (story.shop, story.bank)
    before = {path: rows_of(at) for path, at in tables(place).items()}
    pack(place, archive)
    logs = {source.name: source.log for source in sources}
    events: dict[str, Any] = {"begun": {name: Offsets(log.end()).to_json() for name, log in logs.items()}}
    events["ddl_begun"] = len(story.shop.ddl)
    rows: dict[str, Any] = {"before": before, "recovered": recovered(place, logs)}
    for log in logs.values():
        log.now_ms += 1000
    go_on(*sources)
    dump(place, story.shop, 1, "parts", 700)
    rows["after"] = {f"{LAKES[s.name]}/{path}": wanted for s in sources for path, wanted in s.expected().items()}
    events["ddl"] = [record.decode() for record in story.shop.ddl]
    events["dumps"] = files(place / "dumps")
    events["topics"] = {name: log.stored() for name, log in logs.items()}
    return events, rows


def pack(place: Path, archive: Path) -> None:
    """Both lakes and the dump, without the settings, which name the directory."""
    with tarfile.open(archive, "w:gz", format=tarfile.PAX_FORMAT) as tar:
        for name in (*LAKES.values(), "dumps"):
            tar.add(place / name, name, filter=_nobody)


def _nobody(info: tarfile.TarInfo) -> tarfile.TarInfo | None:
    """A file of nobody's; what names a process of this machine is left out."""
    if "/.heartbeat/" in info.name:
        return None
    info.uid = info.gid = 0
    info.uname = info.gname = ""
    return info


def recovered(place: Path, logs: dict[str, TimedLog]) -> dict[str, Any]:
    """The positions that this code works out without the ledgers, on a copy."""
    found = {}
    for name, lake in LAKES.items():
        copy = place.parent / f"copy-{name}"
        shutil.copytree(place, copy)
        configure(copy)
        (copy / lake / ".binlake" / name / "ledger.json").unlink()
        stream = Process(copy, name, logs[name])
        found[name] = {"positions": Offsets(stream.recovered).to_json(), **transactions_of(stream.ledger)}
        stream.close()
    return found


def files(root: Path) -> dict[str, str]:
    """The files below a directory, as text."""
    return {str(path.relative_to(root)): path.read_text() for path in sorted(root.rglob("*")) if path.is_file()}
