"""Dates with a month or day of zero, in every format and type, under every policy."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from functools import partial
from typing import Any

import pyarrow as pa
import pytest

from binlake.decode.changes import DecodedRecords, ZeroDates
from binlake.decode.options import DecodeOptions
from binlake.stream.definitions.schemas import SchemaRegistry
from tests.binlake.decode.events import cells, declared, raw_envelope, reasons
from tests.binlake.decode.events import decoded as debezium
from tests.binlake.decode.formats import test_canal as canal
from tests.binlake.decode.formats import test_maxwell as maxwell
from tests.binlake.stream.topic_log import settings
from tests.counting import calls_an_item

UTC = dt.UTC
Decode = Callable[[str, list[str], ZeroDates], DecodedRecords]
DAY, MOMENT = dt.date(2024, 2, 29), dt.datetime(2024, 2, 29, 12, 30, 0, 500000, tzinfo=UTC)
EPOCH_DAY, EPOCH = dt.date(1970, 1, 1), dt.datetime(1970, 1, 1, tzinfo=UTC)
ZERO_DAYS = ["0000-00-00", "2024-00-10", "2024-02-00", "0000-05-00"]
#: (type, a good value and its text under each policy, the zero dates, the epoch)
TYPES: list[tuple[str, str, Any, str, list[str], Any]] = [
    ("date", "2024-02-29", DAY, "2024-02-29", ZERO_DAYS, EPOCH_DAY),
    (
        "datetime(3)",
        "2024-02-29 12:30:00.500",
        MOMENT,
        "2024-02-29 12:30:00.5",
        [*(f"{day} 00:00:00" for day in ZERO_DAYS), "2024-00-10 11:12:13", "0000-00-00 00:00:00.000"],
        EPOCH,
    ),
    ("timestamp(3)", "2024-02-29 12:30:00.500", MOMENT, "2024-02-29 12:30:00.5", ["0000-00-00 00:00:00"], EPOCH),
]


def of_canal(kind: str, texts: list[str], policy: ZeroDates) -> DecodedRecords:
    """One message of one row for each text."""
    types = {"id": "int(11)", "c": kind}
    return canal.decoded([canal.message([{"id": "1", "c": t}], types=types) for t in texts], zero_dates=policy)


def of_maxwell(kind: str, texts: list[str], policy: ZeroDates) -> DecodedRecords:
    """The same from Maxwell."""
    values: list[bytes | None] = [maxwell.message({"id": 1, "c": text}) for text in texts]
    return maxwell.decoded(values, declared({"id": "int", "c": kind}, ("id",)), zero_dates=policy)


@pytest.mark.parametrize("of", [of_canal, of_maxwell])
@pytest.mark.parametrize(("kind", "good", "value", "text", "zeros", "epoch"), TYPES)
def test_one_policy_for_canal_and_maxwell(
    of: Decode, kind: str, good: str, value: object, text: str, zeros: list[str], epoch: object
) -> None:
    sent = [good, *zeros, good]
    bare = [zero.removesuffix(".000") for zero in zeros]
    expected = {
        ZeroDates.NULL: [value, *[None] * len(zeros), value],
        ZeroDates.EPOCH: [value, *[epoch] * len(zeros), value],
        ZeroDates.TEXT: [text, *bare, text],
        ZeroDates.QUARANTINE: [value, value],
    }
    for policy, rows in expected.items():
        found = of(kind, sent, policy)
        assert cells(found, "c") == rows
        refused = range(1, len(zeros) + 1) if policy is ZeroDates.QUARANTINE else ()
        assert reasons(found) == dict.fromkeys(refused, "bad_value")


@pytest.mark.parametrize("of", [of_canal, of_maxwell])
@pytest.mark.parametrize("policy", list(ZeroDates))
def test_other_impossible_dates_are_refused(of: Decode, policy: ZeroDates) -> None:
    bad = ["2024-02-30", "2024-13-01", "00-00-00", "2024-00-10x", "0000-00-00T00:00:00"]
    assert reasons(of("date", bad, policy)) == dict.fromkeys(range(len(bad)), "bad_value")


@pytest.mark.parametrize("policy", list(ZeroDates))
def test_a_zero_date_in_a_key_never_meets_another_key(policy: ZeroDates) -> None:
    """Null is no key, and the epoch may be the key of another row."""
    sent = [*ZERO_DAYS, "1970-01-01"]
    types = {"id": "int(11)", "c": "date"}
    found = canal.decoded(
        [canal.message([{"id": "1", "c": day}], types=types, key=["c"]) for day in sent], zero_dates=policy
    )
    if policy is ZeroDates.TEXT:
        assert cells(found, "c") == sent
    else:
        assert cells(found, "c") == [EPOCH_DAY]
        assert reasons(found) == dict.fromkeys(range(len(ZERO_DAYS)), "bad_value")


@pytest.mark.parametrize(
    ("kind", "good", "text"),
    [
        ("date", "19782", "2024-02-29"),
        ("datetime", "1709209800500", "2024-02-29 12:30:00.5"),
        ("datetime(6)", "1709209800500000", "2024-02-29 12:30:00.5"),
        ("timestamp(3)", '"2024-02-29T13:30:00.5+01:00"', "2024-02-29 12:30:00.5"),
        ("timestamp", '"2024-02-29T12:30:00Z"', "2024-02-29 12:30:00"),
    ],
)
def test_debezium_has_lost_the_date_but_follows_the_form(kind: str, good: str, text: str) -> None:
    """Null stays null, and a start of 1970 may be a real date."""
    values = [raw_envelope(b'{"id":1,"v":%s}' % value.encode()) for value in (good, "null")]
    schemas = declared({"id": "int", "v": kind}, ("id",))
    for policy in ZeroDates:
        found = debezium([*values], schemas, zero_dates=policy)
        shown = cells(found, "v")
        assert shown[1] is None
        assert (shown[0] == text) == (policy is ZeroDates.TEXT)
        (batch,) = found.changes
        assert (batch.schema.column("v").lake_type == pa.string()) == (policy is ZeroDates.TEXT)


def test_the_settings_reach_the_decoder() -> None:
    """``null`` without quotes is YAML's null."""
    for said, policy in ((None, ZeroDates.NULL), ("null", ZeroDates.NULL), ("text", ZeroDates.TEXT)):
        registry = SchemaRegistry(settings("/lake", [], source={"zero_dates": said}, kafka=_KAFKA))
        assert registry.options(frozenset()).zero_dates is policy
    assert DecodeOptions().zero_dates is ZeroDates.NULL


_KAFKA = {"bootstrap_servers": "127.0.0.1:1", "topics": ["t"]}


def test_good_dates_are_not_searched_for_zeros() -> None:
    """The calls for a good date do not depend on the policy. In the control each date is looked at."""

    def read(policy: ZeroDates, count: int) -> list[str]:
        texts = ["2024-02-29"] * count
        of_canal("date", texts, policy)
        return texts

    def searched(count: int) -> bool:
        return any(text.startswith("0000") for text in read(ZeroDates.NULL, count))

    calls = {policy: calls_an_item(partial(read, policy), 500, 1_000) for policy in ZeroDates}
    assert max(calls.values()) - min(calls.values()) < 0.1, calls
    assert calls_an_item(searched, 500, 1_000) > calls[ZeroDates.NULL] + 0.9
