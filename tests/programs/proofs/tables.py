"""Tables that others wrote: hudi-rs' test tables and those in Hudi's own test jars, read by binlake and by hudi-rs.

A table is equal if both give the same rows, cell by cell: now, and as of each commit with the newest columns. It is
refused if binlake says so by one of the rules of docs/limits.md (``RULES``); another error is wrong, and so is a
difference.

hudi-rs publishes its tables in its repository alone: ``--option tables=DIRECTORY`` names a checkout of apache/hudi-rs.
Without it only the few in ``tests/data/foreign`` and Hudi's are judged.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import hudilake
from binlake.stream.spark.jars import resolve_archive
from embedded.jars import HUDI_TESTS
from hudilake.errors import LakeError, UnsupportedError
from tests.judges import hudi_rs
from tests.judges.agreement import Rows
from tests.judges.rows import canonical
from tests.paths import DATA
from tests.programs.proofs.part import Outcome, Task, Verdict

FOREIGN = DATA / "foreign"
#: What a refusal says -> the rule of docs/limits.md, in its words.
RULES: Mapping[str, str] = {
    "hoodie.bootstrap.base.path is": "bootstrapped tables",
}
_PROPERTIES = ".hoodie/hoodie.properties"


@dataclass(frozen=True)
class ForeignTables:
    """The part ``tables``."""

    name: str = "tables"
    owner: str = "apache/hudi-rs, apache/hudi"
    inputs: str = "tables"
    about: str = (
        "Tables of versions 6, 8 and 9, copy-on-write and merge-on-read, with nested columns, Avro and Parquet log"
        " blocks, rollbacks, deletes, overwrites and without meta fields. Each is read by binlake and by hudi-rs: now,"
        " and as of each commit that has the newest columns. All cells must be the same. A refused table is refused by"
        " a rule of [Limits](limits.md). The tables of hudi-rs are in its repository alone: `python -m"
        " tests.programs.proofs tables --option tables=DIRECTORY` with a checkout of it."
    )

    def run(self, task: Task) -> Iterator[Verdict]:
        """Unpack what is new below the task's place, and judge it."""
        archives = _of_hudi(task.place)
        for directory in task.options:
            archives |= _archives_of(Path(directory))
        stems = {name.rpartition("/")[2] for name in archives}
        archives |= {name: path for name, path in _archives_of(FOREIGN).items() if name not in stems}
        chosen = [name for name in sorted(archives) if name not in task.judged][task.start :]
        for name in chosen[: task.limit]:
            yield judge(name, unpacked(archives[name], task.place / "unpacked" / name))


def _archives_of(directory: Path) -> dict[str, Path]:
    """The archives of tables at or below a directory, by ``<parent>/<name>``; our own copies by their name."""
    if directory == FOREIGN:
        return {path.stem: path for path in directory.glob("*.zip")}
    return {f"{path.parent.name}/{path.stem}": path for path in directory.rglob("*.zip")}


def _of_hudi(place: Path) -> dict[str, Path]:
    jar = zipfile.ZipFile(resolve_archive(HUDI_TESTS, "hudi-tests"))
    names = [name for name in jar.namelist() if name.endswith(".zip")]
    return {f"hudi/{Path(name).stem}": Path(jar.extract(name, place / "jar")) for name in names}


def unpacked(archive: Path, place: Path) -> Path:
    """The root of the table in an archive, unpacked at a place."""
    with zipfile.ZipFile(archive) as zipped:
        zipped.extractall(place)
    roots = sorted(path.parents[1] for path in place.rglob(_PROPERTIES) if path.parents[1].name != "metadata")
    return roots[0]


def judge(name: str, root: Path) -> Verdict:
    """Compare what binlake and hudi-rs read of a table."""
    try:
        table = hudilake.open_table(str(root))
        moments: list[str | None] = [None, *(commit.requested for commit in table.history())]
        # Time travel has the columns of its time here, and the newest ones in hudi-rs.
        moments = [m for m in moments if m is None or table.internal.schema_as_of(m) == table.schema]
        ours = {moment: table.scan(as_of=moment).to_arrow() for moment in moments}
    except UnsupportedError as error:
        rule = next((rule for says, rule in RULES.items() if says in str(error)), None)
        if rule is None:
            return Verdict(name, Outcome.WRONG, "refused, and no rule of docs/limits.md says so", str(error))
        return Verdict(name, Outcome.REFUSED, rule)
    except LakeError as error:
        return Verdict(name, Outcome.WRONG, "cannot be read", str(error))
    for moment, rows in ours.items():
        theirs = hudi_rs.snapshot(root) if moment is None else hudi_rs.as_of(root, moment)
        if (difference := difference_of(rows, theirs, "hudi-rs")) is not None:
            return Verdict(name, Outcome.WRONG, "differs from hudi-rs", f"as of {moment or 'now'}: {difference}")
    return Verdict(name, Outcome.EQUAL)


def difference_of(ours: Rows, theirs: Rows, judge: str, columns: Sequence[str] | None = None) -> str | None:
    """How the rows of a judge differ from ours, in words; None if they do not. ``columns``: as of ``canonical``."""
    one, other = canonical(ours, columns), canonical(theirs, columns)
    if one == other:
        return None
    only = [row for row in one if row not in other], [row for row in other if row not in one]
    return f"{len(one)} rows, {judge} {len(other)}; only here {only[0][:1]}, only there {only[1][:1]}"
