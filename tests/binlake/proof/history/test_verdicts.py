"""The verdict on each version, against the reader's own merge, and how keys and traces are read."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from binlake.decode.formats.trace import NO_TRACE, Trace, trace_of
from binlake.decode.options import DecodeOptions
from binlake.decode.order import OrderKind, OrderPlace
from binlake.proof.history.verdicts import Fate, Version, verdicts
from hudilake.format.files.log_events import LogEvents
from tests.binlake.decode.formats import format_recordings
from tests.binlake.decode.recordings import topics


def version(at: int, order: int | None, *, row: bool, standing: bool = True) -> Version:
    return Version("k", "", f"c{at}", f"c{at}", order, {"n": at} if row else None, (f"f{at}",), standing)


EVENTS = st.lists(st.tuples(st.none() | st.integers(0, 4), st.booleans()), min_size=1, max_size=6)


def winner_of_the_reader(events: Sequence[tuple[int | None, bool]]) -> int:
    """The number of the winning event by the merge that readers use."""
    log = LogEvents(pa.schema([pa.field("_hoodie_record_key", pa.string()), pa.field("order", pa.int64())]), "order")
    for order, row in events:
        if row:
            log._add_rows(pa.table({"_hoodie_record_key": ["k"], "order": pa.array([order], pa.int64())}))
        else:
            log._add_deletes(pa.table({"_hoodie_record_key": ["k"], "ordering": pa.array([order], pa.int64())}))
        log.instants.append("")
    return int(log.merged().winners.block[0])


@given(EVENTS)
def test_the_winner_is_the_readers(events: Sequence[tuple[int | None, bool]]) -> None:
    events = [(0 if order is None and row else order, row) for order, row in events]
    versions = [version(at, order, row=row) for at, (order, row) in enumerate(events)]
    told = verdicts(versions)
    won = [at for at, verdict in enumerate(told) if verdict.fate in (Fate.LIVE, Fate.DELETED)]
    assert won == [winner_of_the_reader(events)]
    assert (told[won[0]].fate is Fate.LIVE) == events[won[0]][1]
    for at, verdict in enumerate(told):
        decided = int((verdict.by or "c-1")[1:])
        assert (verdict.fate is Fate.LATE) == (0 <= decided < at)


def test_a_delete_that_a_compaction_has_dropped() -> None:
    told = verdicts([version(0, 9, row=False, standing=False), version(1, 5, row=True)])
    assert [verdict.fate for verdict in told] == [Fate.REPLACED, Fate.LIVE]
    assert "tombstone_retention_hours" in told[1].why
    kept = verdicts([version(0, 9, row=False), version(1, 5, row=True)])
    assert [verdict.fate for verdict in kept] == [Fate.DELETED, Fate.LATE]


@pytest.mark.parametrize(
    ("order", "kind", "text"),
    [
        ((3 << 32) | 4711, OrderKind.BINLOG, "000003:4711"),
        ((2 << 52) | (3 << 32) | 4711, OrderKind.BINLOG, "000003:4711, epoch 2"),
        (1_760_000_000, OrderKind.SNAPSHOT, "snapshot at 2025-10-09 08:53:20"),
        (17, OrderKind.OFFSET, "offset 17"),
    ],
)
def test_an_ordering_value_in_words(order: int, kind: OrderKind, text: str) -> None:
    assert (OrderPlace.of(order).kind, str(OrderPlace.of(order))) == (kind, text)


def first_of(values: Sequence[bytes | None], what: str) -> bytes:
    return next(v for v in values if v is not None and what.encode() in v)


def test_traces_of_recorded_messages() -> None:
    options = DecodeOptions()
    values = topics("bank", "schema")["bank_schema.bank.accounts"][0].values
    event: dict[str, Any] = json.loads(first_of(values[1500:], '"op":"u"'))["payload"]
    trace = trace_of(json.dumps(event).encode(), options)
    assert (trace.op, trace.gtid, trace.transaction) == ("u", event["source"]["gtid"], event["transaction"]["id"])
    assert trace.place == f"{event['source']['file']}:{event['source']['pos']}"
    assert trace.before == frozenset({"id", "owner", "balance", "version", "updated"})
    assert trace.names == frozenset({event["source"]["gtid"]})
    framed = trace_of(json.dumps({"schema": {}, "payload": event}).encode(), options)
    assert framed == trace
    maxwell = trace_of(first_of(format_recordings.messages("bank", "maxwell").values, '"type":"update"'), options)
    assert maxwell.op == "u"
    assert (maxwell.transaction or "").isdigit()
    assert maxwell.before == trace.before
    canal = trace_of(first_of(format_recordings.messages("bank", "canal").values, '"type":"DELETE"'), options)
    assert (canal.op, canal.gtid, canal.transaction, canal.before) == ("d", None, None, trace.before)
    assert trace_of(None, options) == trace_of(b"{broken", options) == NO_TRACE == Trace()
    flat = trace_of(b'{"id":1,"__op":"u","__source_file":"b.3","__source_pos":4,"__source_gtid":"0-1-2"}', options)
    assert (flat.op, flat.place, flat.gtid, flat.before) == ("u", "b.3:4", "0-1-2", None)
