"""The lake page: every table of every stream, the worst first, and what stands still."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from binlake.cli.console.looked import LookedTable, StreamView
from binlake.cli.console.page import Asked, Site, line_points, rendered, state_words
from binlake.cli.text import duration, lag_amount, number, size
from binlake.proof.history.history import place_text
from binlake.settings import Settings
from binlake.stream.monitoring.status import no_ledger_words
from binlake.stream.monitoring.writers import Writer
from hudilake.clock import now_ms, parse_instant

#: A compaction that is pending for so long is named, so many of them.
HANGS_MS, HANGING = 30_000, 5
#: Tables of one page: the rows that a browser is given, however many tables there are.
ROWS = 100
_GRAVE = {"unreadable": 0, "stopped": 1, "paused": 2, "loading": 3, "behind": 4, "ok": 5, "unread": 6}


@dataclass(frozen=True, slots=True)
class LakeRow:
    """A table as the page and the terminal show it. Numbers are None where they are not known.

    Args:
        stream, table: their names.
        state: of ``LookedTable.state``.
        why: of a table that cannot be read.
        behind_ms: how old the newest change in the table is.
        freshness_ms: how long that change took from the source to a visible commit.
        waiting: records in Kafka that are not applied; with ``in_bytes``, bytes of a binlog.
        rows, stored: rows, and bytes of the newest file slices; None of a table that was not read.
        log_ratio: bytes of log files over those of base files.
        commit, age_ms: its last commit, and the time since then.
        pending: compactions that are not completed.
        quarantined: records that wait in the quarantine.
        verified: the place of the source's log up to which it is known to be as its source; "" if it was not compared.
        rows_age_ms: how old the number of rows is, of a table that has moved since; None if it is the newest.
    """

    stream: str
    table: str
    state: str
    why: str
    behind_ms: int | None
    freshness_ms: int | None
    waiting: int | None
    rows: int | None
    stored: int | None
    log_ratio: float | None
    commit: str
    age_ms: int | None
    pending: tuple[str, ...]
    quarantined: int
    verified: str
    rows_age_ms: int | None = None
    in_bytes: bool = False

    def cells(self) -> dict[str, str]:
        """The cells in their order, for people: heading -> text."""
        return {
            "newest change": duration(self.behind_ms),
            "freshness": duration(self.freshness_ms),
            "lag": "-" if self.waiting is None else lag_amount(self.waiting, in_bytes=self.in_bytes),
            "rows": self._rows_words(),
            "size": "-" if self.stored is None else size(self.stored),
            "log/base": "-" if self.log_ratio is None else f"{self.log_ratio:.2f}",
            "last commit": duration(self.age_ms),
            "pending": number(len(self.pending)) if self.pending else "-",
            "quarantined": number(self.quarantined) if self.quarantined else "-",
            "verified": "-" if self.stored is None else self.verified or "never",
        }

    def _rows_words(self) -> str:
        if self.rows is None:
            return "-" if self.stored is None else "not counted"
        earlier = f" ({duration(self.rows_age_ms)} ago)" if self.rows_age_ms is not None else ""
        return number(self.rows) + earlier


def lake_row(view: StreamView, settings: Settings, table: LookedTable) -> LakeRow:
    """A table of a view."""
    status = table.status
    if status is None:
        why = table.error.what if table.error is not None else ""
        none = (None, None, table.waiting, None, None, None, "", None, (), 0, "")
        return LakeRow(view.name, table.name, table.state, why, *none)
    rules = settings.table_rules(table.source) if table.source is not None else None
    verified = place_text(status.verified, rules) if status.verified is not None and rules is not None else ""
    return LakeRow(
        view.name,
        table.name,
        status.state,
        "; ".join(filter(None, (status.missing, status.finding))),
        table.behind_ms,
        status.freshness_ms,
        table.waiting,
        status.rows,
        status.log_bytes + status.base_bytes,
        status.log_bytes / status.base_bytes if status.base_bytes else None,
        status.commit or "",
        table.age_ms,
        tuple(status.pending),
        status.quarantined,
        verified,
        now_ms() - table.counted_ms if table.counted_ms is not None else None,
        view.stream is not None and view.stream.in_bytes,
    )


def lake_rows(view: StreamView, settings: Settings) -> list[LakeRow]:
    """The tables of a view, by name."""
    return sorted((lake_row(view, settings, one) for one in view.tables.values()), key=lambda row: row.table)


def _greatest(value: float | None) -> tuple[bool, float]:
    """The greatest first, what is not known last."""
    return value is None, -(value or 0)


#: Heading -> the order of the rows by it.
ORDERS: Mapping[str, Callable[[LakeRow], Any]] = {
    "newest change": lambda row: (_GRAVE[row.state], *_greatest(row.behind_ms), row.table),
    "table": lambda row: (row.table, row.stream),
    "freshness": lambda row: _greatest(row.freshness_ms),
    "lag": lambda row: _greatest(row.waiting),
    "rows": lambda row: _greatest(row.rows),
    "size": lambda row: _greatest(row.stored),
    "log/base": lambda row: _greatest(row.log_ratio),
    "last commit": lambda row: _greatest(row.age_ms),
    "pending": lambda row: _greatest(len(row.pending)),
    "quarantined": lambda row: _greatest(row.quarantined),
    "verified": lambda row: (row.verified != "", row.table),
}
WORST_FIRST = "newest change"


def matching(rows: Iterable[LakeRow], words: str, order: str) -> list[LakeRow]:
    """The rows whose table, stream and state have all the words, in an order of ``ORDERS``; the worst first for another
    one."""
    wanted = words.lower().split()
    left = [row for row in rows if all(word in f"{row.stream} {row.table} {row.state}".lower() for word in wanted)]
    return sorted(left, key=ORDERS.get(order, ORDERS[WORST_FIRST]))


def lake_page(site: Site, asked: Asked) -> str:
    """The page. ``asked``: ``q``, words to filter by; ``sort``, a heading; ``from``, the first row."""
    views = [watch.view for watch in site.watches.values()]
    rows = [row for watch in site.watches.values() for row in lake_rows(watch.view, watch.settings)]
    ages = {(view.name, one.name): one.ages for view in views for one in view.tables.values()}
    words, order = asked.get("q", ""), asked.get("sort", WORST_FIRST)
    order = order if order in ORDERS else WORST_FIRST
    left = matching(rows, words, order)
    start = min(_number(asked.get("from", "")), max(0, len(left) - 1)) // ROWS * ROWS
    return rendered(
        "lake.html",
        site,
        "lake",
        streams=[stream_head(view) for view in views],
        rows=[(row, line_points(ages[row.stream, row.table], 60, 14)) for row in left[start : start + ROWS]],
        headings=[one for one in ORDERS if one != "table"],
        several=len(views) > 1,
        words=words,
        order=order,
        start=start,
        step=ROWS,
        found=len(left),
        total=len(rows),
        unseen=sum(view.unseen for view in views),
        begun=all(view.stream is not None for view in views),
        counts={state: sum(row.state == state for row in rows) for state in _GRAVE},
    )


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0


def stream_head(view: StreamView) -> dict[str, Any]:
    """What the page says of a stream."""
    stream = view.stream
    run = stream.run if stream is not None else None
    said: list[str] = []
    if view.error is not None:
        said.append(f"its state cannot be read: {view.error.what}")
    if run is not None:
        said.append(f"process {run.pid} on {run.host}, last sign {duration(run.silent_s * 1000)} ago")
    if view.state in ("failed", "stopped") and view.last_words is not None:
        words = view.last_words
        ended = f"process {words.pid} on {words.host} ended {duration(now_ms() - words.ended_ms)} ago"
        said.append(f"{ended}: {words.what}. Next: {words.do_next}" if words.what else ended)
    if stream is not None and stream.ledger is None:
        said.append(no_ledger_words([one.status for one in view.tables.values() if one.status is not None]))
    return {
        "name": view.name,
        "state": view.state,
        "words": state_words(view),
        "said": "; ".join(said),
        "lag": None if stream is None or stream.lag is None else lag_amount(stream.lag, in_bytes=stream.in_bytes),
        "kafka": stream.kafka if stream is not None else "",
        "batches": stream.ledger.batch if stream is not None and stream.ledger is not None else None,
        "quarantined": view.quarantined,
        "lines": line_points(view.lags, 120, 24),
        "held": [held for held in view.held if held.state != "behind"],
        "in_hand": stream.in_hand if stream is not None else [],
        "hangs": hanging(view),
    }


def hanging(view: StreamView) -> list[str]:
    """The compactions that have been pending for a while, the oldest first, and who works on each."""
    named = []
    for table in view.tables.values():
        for instant in table.status.pending if table.status is not None else ():
            age_ms = now_ms() - parse_instant(instant)
            if age_ms >= HANGS_MS:
                named.append((-age_ms, table, instant))
    lines = []
    for age_ms, table, instant in sorted(named, key=lambda one: one[0])[:HANGING]:
        workers = [one for one in table.status.writers if one.instant == instant] if table.status is not None else []
        since = f"compaction {instant} has been pending for {duration(-age_ms)}"
        who = ", ".join(map(_worker_words, workers)) or "nobody works on it"
        lines.append(f"{table.name}: {since}; {who}. Next: {_next_words(workers, f'{view.conf} {table.name}')}")
    return lines


def _worker_words(worker: Writer) -> str:
    process, silent = f"process {worker.pid} on {worker.host}", f"last sign {duration(worker.silent_s * 1000)} ago"
    if not worker.alive:
        return f"{process}, which worked on it, is dead"
    return f"{process} {'is suspended' if worker.suspended else 'works on it'}, {silent}"


def _next_words(workers: Sequence[Writer], place: str) -> str:
    finish = f"binlake compact {place}"
    for one in workers:
        if one.alive and one.suspended:
            return f"kill -CONT {one.pid} lets it go on; or end the process, then {finish}"
        if one.alive:
            return f"wait while it gives signs; or end the process, then {finish}"
    return finish


def plain(view: StreamView) -> dict[str, Any]:
    """A view as JSON types: what ``/state.json`` gives."""
    stream = view.stream
    states = {one.name: one.state for one in view.tables.values()}
    return {
        "stream": view.name,
        "state": view.state,
        "lag": stream.lag if stream is not None else None,
        "last_words": asdict(view.last_words) if view.last_words is not None else None,
        "unseen": view.unseen,
        "in_hand": [asdict(one) | {"lives": one.lives} for one in stream.in_hand] if stream is not None else [],
        "version": view.version,
        "tables": states,
    }
