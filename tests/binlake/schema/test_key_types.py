"""A key column whose new type gives other texts: the table is written anew, and rows are found by the new texts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tests.binlake.schema.ddl_source import DdlSource
from tests.binlake.schema.test_schema_backlog import FORMS, followed


@FORMS
def test_rows_are_found_by_the_texts_of_the_new_type(tmp_path: Path, framed: bool) -> None:
    """'1' and '01' are two keys before the statement and would be one after it."""

    def script(source: DdlSource) -> Iterator[None]:
        source.create("t", {"id": "int", "code": "varchar(9)", "qty": "int"}, key=("code",))
        for key, code in enumerate(("1", "2", "3")):
            source.put("t", key, code=code, qty=key)
        yield
        source.put("t", 7, code="01", qty=7)
        source.delete("t", 0)
        source.put("t", 1, code="002")
        for row in source.tables["t"].rows.values():
            row["code"] = int(row["code"])
        columns = {"id": "int", "code": "int", "qty": "int"}
        source.rekey("t", "ALTER TABLE t MODIFY code INT NOT NULL", ("code",), columns)
        source.put("t", 1, qty=11)
        yield
        source.put("t", 7, code=70)
        source.delete("t", 2)

    _, followers = followed(tmp_path, script, framed=framed)
    for follower in followers:
        follower.check("t")
        assert follower.quarantined() == []
