import io
import json

import pytest
from rich.console import Console

from binlake.cli.display import JsonDisplay, LiveDisplay, PlainDisplay, Totals, make_display
from binlake.stream.monitoring.progress import PartitionProgress, ProgressEvent, TableProgress

ORDERS = TableProgress(
    table="shop.orders",
    events_read=1200,
    applied=1000,
    superseded=150,
    filtered=30,
    quarantined=20,
    commit_instant="20261121080000000",
    commit_latency_ms=611.0,
    freshness_oldest_ms=4200,
    freshness_newest_ms=1300,
    bytes_written=45_000,
)
BROKEN = TableProgress(table="shop.stock", events_read=7, error="the disk is full")
IDLE = TableProgress(table="shop.coupons", events_read=3, already_applied=3)
EVENT = ProgressEvent(
    batch_id=4,
    latency_ms=640.0,
    stage_ms={"fetch": 50.0, "commit": 1200.0},
    tables=(ORDERS, BROKEN, IDLE),
    partitions=(PartitionProgress("t", 0, 90, 100), PartitionProgress("t", 1, 50, 40)),
    filtered={"heartbeat": 5},
    quarantined=2,
)


def console(*, terminal: bool, height: int = 40, width: int = 200) -> Console:
    return Console(file=io.StringIO(), force_terminal=terminal, width=width, height=height, color_system=None)


def text_of(target: Console) -> str:
    assert isinstance(target.file, io.StringIO)
    return target.file.getvalue()


def test_an_event_adds_up() -> None:
    assert EVENT.events_read == 1200 + 7 + 3 + 5 + 2
    assert EVENT.lag == 10


def test_an_event_survives_json() -> None:
    assert ProgressEvent.from_json(json.loads(json.dumps(EVENT.to_json()))) == EVENT


def test_totals_sum_batches_and_keep_the_latest_freshness() -> None:
    totals = Totals()
    totals.add(EVENT)
    later = TableProgress("shop.orders", applied=1, commit_instant="20261121080001000", commit_latency_ms=1.0)
    totals.add(ProgressEvent(batch_id=5, latency_ms=1, tables=(later,)))
    orders = totals.tables["shop.orders"]
    assert (totals.batches, orders.events_read, orders.applied, orders.commits) == (2, 1200, 1001, 2)
    assert orders.commit_latency_ms == 306.0
    assert orders.freshness_newest_ms is None
    assert totals.tables["shop.coupons"].commits == 0


def test_plain_lines_tell_everything() -> None:
    target = console(terminal=False)
    with PlainDisplay(target) as display:
        display.update(EVENT)
    assert text_of(target).splitlines() == [
        "batch 4: 1,217 events in 640 ms (fetch 50 ms, commit 1.2 s), lag 10, 2 quarantined without a table",
        "  shop.orders: read 1200, applied 1000, superseded 150, filtered 30, quarantined 20, seen before 0; "
        "commit 20261121080000000 after 611 ms, 45.0 KB, freshness 1.3 s to 4.2 s",
        "  shop.stock: read 7, applied 0, superseded 0, filtered 0, quarantined 0, seen before 0; "
        "FAILED: the disk is full",
        "  shop.coupons: read 3, applied 0, superseded 0, filtered 0, quarantined 0, seen before 3; no commit",
    ]


def test_json_lines_are_read_back() -> None:
    target = console(terminal=False)
    with JsonDisplay(target) as display:
        display.update(EVENT)
        display.update(EVENT)
    lines = text_of(target).splitlines()
    assert [ProgressEvent.from_json(json.loads(line)) for line in lines] == [EVENT, EVENT]


def picture(display: LiveDisplay) -> str:
    target = console(terminal=False)
    target.print(display.render())
    return text_of(target)


def test_the_live_table_shows_sums_and_errors() -> None:
    display = LiveDisplay("shop", console(terminal=True))
    assert "no batch has finished yet" in picture(display)
    display.update(EVENT)
    display.update(EVENT)
    shown = picture(display)
    row = next(line for line in shown.splitlines() if "shop.orders" in line)
    assert [cell.strip() for cell in row.strip("│").split("│")] == [
        "shop.orders",
        "2,400",
        "611 ms",
        "2,000",
        "300",
        "60",
        "40",
        "0",
        "2",
        "1.3 s",
        "90.0 KB",
    ]
    assert "the disk is full" in shown
    assert "2 batches" in shown


def test_the_live_table_fits_the_terminal_and_keeps_what_failed() -> None:
    display = LiveDisplay("shop", console(terminal=True, height=12))
    many = tuple(TableProgress(table=f"d.t{i:03d}", events_read=i + 1) for i in range(50))
    display.update(ProgressEvent(batch_id=0, latency_ms=1, tables=(*many, BROKEN)))
    shown = picture(display)
    assert "and 47 more" in shown
    assert "shop.stock" in shown
    assert "d.t049" in shown
    assert "d.t001" not in shown


def test_a_narrow_terminal_gets_the_columns_that_matter() -> None:
    display = LiveDisplay("shop", console(terminal=True, width=100))
    display.update(ProgressEvent(batch_id=0, latency_ms=1, tables=(ORDERS,)))
    shown = picture(display)
    assert max(len(line) for line in shown.splitlines()) <= 100
    assert "filtered" not in shown
    assert all(word in shown for word in ("read", "applied", "superseded", "quarantined", "latency", "freshness"))


def test_the_live_display_draws_on_a_terminal() -> None:
    target = console(terminal=True)
    with LiveDisplay("shop", target) as display:
        display.update(EVENT)
    assert "shop.orders" in text_of(target)


@pytest.mark.parametrize(
    ("terminal", "live", "as_json", "kind"),
    [
        (True, True, False, LiveDisplay),
        (True, False, False, PlainDisplay),
        (False, True, False, PlainDisplay),
        (True, True, True, JsonDisplay),
    ],
)
def test_the_display_fits_where_it_goes(terminal: bool, live: bool, as_json: bool, kind: type) -> None:
    assert isinstance(make_display("x", console(terminal=terminal), live=live, as_json=as_json), kind)


def test_a_long_name_is_whole_and_an_error_stays_beside_it() -> None:
    narrow = console(terminal=True, width=80)
    display = LiveDisplay("shop", narrow)
    long = TableProgress(table="a_department_with_a_long_name.orders_of_it", error="the disk is full")
    display.update(ProgressEvent(batch_id=0, latency_ms=1, tables=(long,)))
    narrow.print(display.render())
    shown = text_of(narrow)
    assert long.table in shown
    assert "…" not in shown
    assert {"the", "disk", "is", "full"} <= set(shown.split())
