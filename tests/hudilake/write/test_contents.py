"""Sums of contents go from one base file to the next: what was wrong in an old file differs in the new one too."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import hudilake
from hudilake.format.definition.schema import META_FIELDS
from hudilake.format.digest.content_sum import CONTENTS_KEY, ContentSum
from hudilake.format.files.base_file import open_base_file
from hudilake.format.files.parquet_file import encode_parquet
from hudilake.format.timeline.commit_metadata import CommitMetadata
from hudilake.services.fsck import Check, Severity
from hudilake.services.fsck.content import ContentsReport, check_contents
from hudilake.services.fsck.evidence import Evidence
from hudilake.storage.local import LocalStorage
from tests.hudilake.services.fsck.contents_plants import one_cell, plant

COLUMNS = {"id": pa.int64(), "qty": pa.int32(), "updated_at": pa.int64(), "text": pa.string()}
KINDS = ("copy_on_write", "merge_on_read", "append", "append, copy_on_write")


def stored(**columns: pa.DataType) -> pa.Schema:
    """The columns of a file."""
    return pa.schema({**dict.fromkeys(META_FIELDS, pa.string()), **COLUMNS, **columns})


class Written:
    """A table of a kind with forty rows in one base file, and what is done to it."""

    def __init__(self, path: Path, kind: str) -> None:
        self.path, self.kind = path, kind
        key: dict[str, Any] = {} if kind.startswith("append") else {"key": "id", "order_by": "updated_at", "buckets": 1}
        table_type: Any = "copy_on_write" if "copy" in kind else "merge_on_read"
        self.table = hudilake.create_table(str(path), pa.schema(COLUMNS), type=table_type, **key)
        self.write(range(40), 1)
        if table_type == "merge_on_read":
            self.table.compact()

    def write(self, ids: range, order: int) -> None:
        rows = [{"id": i, "qty": i % 7, "updated_at": order, "text": f"t{i} {order}"} for i in ids]
        if self.kind.startswith("append"):
            self.table.append(rows)
        else:
            self.table.upsert(rows)

    def go_on(self) -> None:
        """Other rows than those in the middle, and what makes a base file of them."""
        self.write(range(30, 45), 2)
        if not self.kind.startswith("append"):
            self.table.delete([{"id": 1}, {"id": 99}])
        if "copy" not in self.kind:
            self.table.compact()

    def newest_base(self) -> Path:
        return max(self.path.glob("*.parquet"), key=lambda file: file.name.rsplit("_", 1)[-1])

    def check(self) -> ContentsReport:
        return check_contents(Evidence.gather(LocalStorage(self.path, fsync=False)))

    def recorded(self) -> dict[str, ContentSum | None]:
        bodies = Evidence.gather(LocalStorage(self.path, fsync=False)).bodies.values()
        return {stat.file_name: stat.contents for body in bodies for stat in body.stats}


@pytest.mark.first(2)
@pytest.mark.parametrize("kind", KINDS)
def test_what_was_wrong_in_an_old_file_is_found_in_the_next_one(tmp_path: Path, kind: str) -> None:
    sound, faulty = Written(tmp_path / "sound", kind), Written(tmp_path / "faulty", kind)
    first = faulty.newest_base()
    assert plant(first, one_cell)
    for written in (sound, faulty):
        written.go_on()
        newest = written.newest_base()
        with pq.ParquetFile(newest) as file:  # the next writer begins with what the file itself says
            assert file.metadata.metadata[CONTENTS_KEY.encode()].decode() == str(written.recorded()[newest.name])
    assert sound.check().findings == []
    found = {finding.path for finding in faulty.check().findings}
    assert faulty.newest_base() != first
    assert found == {file.name for file in faulty.path.glob("*.parquet")}
    told = [f for f in faulty.table.fsck().findings if f.check is Check.CONTENT and f.severity is Severity.ERROR]
    assert {finding.path for finding in told} == found


def test_after_a_file_that_does_not_say_it_all_rows_are_digested(tmp_path: Path) -> None:
    written = Written(tmp_path / "t", "copy_on_write")
    base = written.newest_base()
    with pq.ParquetFile(base) as file:
        footer = {k.decode(): v.decode() for k, v in file.metadata.metadata.items() if k != CONTENTS_KEY.encode()}
        base.write_bytes(encode_parquet(file.read().replace_schema_metadata(None), "zstd", 1, footer))
    written.go_on()
    assert written.recorded()[written.newest_base().name] is not None
    assert written.check().findings == []


def test_a_column_that_takes_longer_numbers_and_a_new_one_keep_the_sums(tmp_path: Path) -> None:
    written = Written(tmp_path / "t", "copy_on_write")
    first = written.recorded()[written.newest_base().name]
    written.table.evolve(pa.schema({**COLUMNS, "qty": pa.int64(), "more": pa.string()}))
    with open_base_file(LocalStorage(written.path, fsync=False), written.newest_base().name, [], 1) as opened:
        assert opened.contents_in(stored(qty=pa.int64(), more=pa.string())) == first
        assert opened.contents_in(stored(qty=pa.string())) is None
    written.table.upsert([{"id": 50, "qty": 2**40, "updated_at": 5, "text": "x", "more": "y"}])
    written.go_on()
    report = written.check()
    assert (report.findings, report.proved) == ([], 4)


def test_a_commit_that_says_nothing_leaves_its_files_undetermined(tmp_path: Path) -> None:
    written = Written(tmp_path / "t", "copy_on_write")
    (commit,) = (tmp_path / "t" / ".hoodie" / "timeline").glob("*.commit")
    body = CommitMetadata.from_bytes(commit.read_bytes(), "")
    assert CONTENTS_KEY not in body.extra
    for forged in ("[]", "[1]", "{", '["1-x"]', None):
        extra = body.extra if forged is None else {**body.extra, CONTENTS_KEY: forged}
        plain = tuple(replace(stat, contents=None) for stat in body.stats)
        commit.write_bytes(CommitMetadata(plain, extra, body.operation).to_bytes())
        report = written.check()
        assert (report.proved, report.undetermined) == (0, 1)
        assert [f.severity for f in report.findings] == [Severity.INFO]
        assert "not determined" in report.findings[0].what
