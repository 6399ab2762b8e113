"""The transactions of records, in the words of each format: against what the messages of the recordings say."""

from __future__ import annotations

import json
from typing import Any

import pytest

from binlake.decode.changes import DecodedRecords, RawRecords, SourceTable
from binlake.decode.formats.reader import decode
from tests.binlake.decode.formats import format_recordings as formats
from tests.binlake.decode.recordings import history_of, options_of, topics


class Every:
    """All tables."""

    def __contains__(self, source: object) -> bool:
        return isinstance(source, SourceTable)


def named(document: dict[str, Any], form: str) -> str | None:
    """What one message says."""
    if form == "maxwell":
        return None if document["type"].startswith("bootstrap") else str(document["xid"])
    if form == "canal":
        return document["gtid"] or None
    if form == "flat":
        return None if document["__op"] == "r" else document["__source_gtid"]
    return None if document["op"] == "r" else document["source"]["gtid"]


def check(found: DecodedRecords, records: RawRecords, form: str) -> int:
    """Each record of a batch has its name; returns how many have one."""
    values = dict(zip(records.offsets.tolist(), records.values, strict=True))
    count = 0
    for batch in found.changes:
        for offset in batch.rows.column("__offset").unique().to_pylist():
            name = named(json.loads(values[offset] or b""), form)
            assert batch.transactions.get(offset) == name
            count += name is not None
    return count


@pytest.mark.parametrize(("form", "some"), [("maxwell", True), ("canal", False)])
def test_maxwell_names_its_xid_and_canal_a_gtid_if_it_has_one(form: str, some: bool) -> None:
    found = formats.decode_recording("shop", form, 10**9, transactions_of=Every())
    assert (check(found, formats.messages("shop", form), form) > 100) == some
    assert len(found.changes) > 1


@pytest.mark.parametrize("variant", ["plain", "flat"])
def test_debezium_names_gtids(variant: str) -> None:
    """Rows of a snapshot have none."""
    options = options_of(variant, transactions_of=Every())
    [records] = topics("shop", variant)[f"shop_{variant}.shop.orders"].values()
    values = [json.loads(value) for value in records.values if value]
    found = decode(records, history_of("shop", variant), options)
    assert check(found, records, variant) > 100
    assert any(document.get("op", document.get("__op")) == "r" for document in values)


def test_nothing_is_asked_for_where_no_table_wants_it() -> None:
    found = formats.decode_recording("shop", "maxwell", 10**9)
    assert all(batch.transactions == {} for batch in found.changes)
