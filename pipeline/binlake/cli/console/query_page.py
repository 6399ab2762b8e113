"""The query page: SQL over the lake's tables, what its plan leaves to read, time travel, and the history of a row.

A query runs in a process of its own, as ``binlake query``: it reads only, and is ended when it has given enough rows or
has taken long enough. The plan is worked out here, as ``binlake explain`` does, and reads no data file.
"""

from __future__ import annotations

import json
import selectors
import subprocess
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from binlake.cli.commands.reads.query import NamedTables, TableQueries, objects_of, plan_named, text
from binlake.cli.console.page import Asked, Site, error_words, has_left, rendered
from binlake.cli.console.plan_picture import MEASURES, PlanPicture, plan_picture
from binlake.cli.table_options import chosen_one
from binlake.proof.history.commits import CommitLog
from binlake.proof.history.history import Line, RowHistory, place_text
from binlake.proof.history.keys import row_key
from binlake.proof.history.why import row_histories
from binlake.settings import Settings, TableRules
from hudilake.clock import monotonic_s
from hudilake.errors import ConfigError, LakeError
from hudilake.query.changes.feed import ChangeFeed
from hudilake.query.changes.position import position_at
from hudilake.query.sql import SqlQuery
from hudilake.query.sql.text import lower, spelled
from hudilake.read import Snapshot, instant_of
from hudilake.read.inside.tally import ReadTally
from hudilake.table.table import HudiTable
from hudilake.wording import counted

#: What a query may give and take; cells and characters are those of the whole answer.
ROWS, SECONDS, MEMORY, CELL, CELLS, CHARACTERS = 500, 30.0, "1GB", 400, 20_000, 2_000_000
#: Queries that run at once for all who look, and how long a further one waits for its turn.
AT_ONCE, TURN_S = 2, 3.0
_turns = threading.BoundedSemaphore(AT_ONCE)
_LINE_BYTES = 4 << 20
#: Commits that the slider goes over.
COMMITS = 200


@dataclass
class QueryAnswer:
    """The rows of a query as texts, None for NULL.

    ``ended``: why there are no more, "" if these are all. ``error``: for people. ``tally``: what was read of base
    files, of a query that came to its end. ``characters``: of all cells.
    """

    columns: list[str] = field(default_factory=list)
    rows: list[list[str | None]] = field(default_factory=list)
    ended: str = ""
    error: str = ""
    tally: ReadTally | None = None
    characters: int = 0


def run_query(conf: str, sql: str, as_of: str, seconds: float | None = None) -> QueryAnswer:
    """Run an SQL query in a process of its own; it ends with the wish of who asked for it. ``as_of``: a moment, "" for
    now."""
    if not _turns.acquire(timeout=TURN_S):
        return QueryAnswer(error=f"{AT_ONCE} queries run here already. Next: wait until they have ended")
    seconds = SECONDS if seconds is None else seconds
    moment = ["--as-of", as_of] if as_of else []
    words = ["query", "--conf", conf, "--format", "json", "--counts", "--memory", MEMORY, *moment, "--", sql]
    try:
        with subprocess.Popen(
            [sys.executable, "-m", "binlake.cli", *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        ) as process:
            try:
                return _answer(process, monotonic_s() + seconds, seconds)
            finally:
                process.kill()
    except (OSError, ValueError) as error:  # the words are too long for a process, or no words at all
        return QueryAnswer(error=f"the query cannot be run: {error}. Next: correct it")
    finally:
        _turns.release()


def _answer(process: subprocess.Popen[bytes], until_s: float, seconds: float) -> QueryAnswer:
    answer, rest, errors = QueryAnswer(), b"", b""
    assert process.stdout is not None
    assert process.stderr is not None
    with selectors.DefaultSelector() as ready:
        ready.register(process.stdout, selectors.EVENT_READ)
        ready.register(process.stderr, selectors.EVENT_READ)
        while ready.get_map():
            if monotonic_s() > until_s:
                answer.ended = f"the query was ended after {seconds:.0f} s"
                return answer
            if has_left():
                answer.ended = "nobody waits for it"
                return answer
            for key, _ in ready.select(0.2):
                data = key.fileobj.read1(1 << 16)  # type: ignore[union-attr]
                if not data:
                    ready.unregister(key.fileobj)
                elif key.fileobj is process.stderr:
                    errors = (errors + data)[-4096:]
                else:
                    *lines, rest = (rest + data).split(b"\n")
                    for line in lines:
                        _take(answer, line)
                    if answer.ended or len(rest) > _LINE_BYTES:
                        answer.ended = answer.ended or "a row is too large for this page"
                        return answer
    said = errors.decode(errors="replace").strip()
    if process.wait() != 0:
        answer.error = said.rpartition("error: ")[2]
    else:
        answer.tally = ReadTally(**json.loads(said.rpartition("\n")[2]))
    return answer


def _take(answer: QueryAnswer, line: bytes) -> None:
    count, columns = len(answer.rows), len(answer.columns)
    if count == ROWS or count * columns >= CELLS or answer.characters >= CHARACTERS:
        why = "" if count == ROWS else ": more are too large for this page"
        answer.ended = f"the first {counted(count, 'row')}{why}"
        return
    fields: dict[str, Any] = json.loads(line)
    answer.columns = answer.columns or list(fields)
    row = [None if value is None else _cell(value) for value in fields.values()]
    answer.rows.append(row)
    answer.characters += sum(len(cell) for cell in row if cell is not None)


def _cell(value: object) -> str:
    words = text(value)
    return words if len(words) <= CELL else f"{words[:CELL]}..."


def planned(conf: str, sql: str, as_of: str) -> SqlQuery:
    """What a query would read, without reading data. Raises ConfigError, and what planning raises."""
    asked = TableQueries(Snapshot(instant_of(as_of) if as_of else None))
    return plan_named(NamedTables([sql], None, Path(conf), asked, index=True), count_all=True)


def first_query(table: str) -> str:
    """The query that the page proposes for a table."""
    name = ".".join(f'"{part.replace(chr(34), 2 * chr(34))}"' for part in table.split(".", 1))
    return f"select * from {name} limit 50"  # noqa: S608 - quoted


def moments(settings: Settings, table: str) -> list[str]:
    """The newest commits of a table, oldest first: what time travel goes over. Raises as ``chosen_one``."""
    timeline = HudiTable.open(chosen_one(settings, table).storage).timeline
    return [instant.requested_time for instant in timeline.completed()[-COMMITS:]]


def histories(settings: Settings, table: str, key: str) -> Sequence[tuple[RowHistory, list[list[str]]]]:
    """The histories of a row, each with the cells of its lines. Raises ConfigError, and as ``row_histories``."""
    place = chosen_one(settings, table)
    opened = HudiTable.open(place.storage)
    rows = row_histories(opened, row_key(key, opened), CommitLog.of(opened, settings.name))
    return [(one, [_line(line, place.rules) for line in one.lines[-ROWS:]]) for one in rows]


def _line(line: Line, rules: TableRules) -> list[str]:
    commit = line.commit
    values = line.statement or ", ".join(
        f"{name}={'null' if value is None else _cell(value)}" for name, value in (line.values or {}).items()
    )
    return [
        place_text(line.order, rules),
        line.op,
        commit.instant if commit is not None else "",
        commit.kind.value if commit is not None else "",
        f"{line.fate.value}: {line.why}" if line.fate is not None else line.why,
        values,
    ]


_OPS = {"i": "insert", "u": "update", "d": "delete"}


@dataclass
class TableDifference:
    """What commits changed: a line for each row, and whether there are more."""

    lines: list[list[str]] = field(default_factory=list)
    more: bool = False


def difference(settings: Settings, table: str, since: str, until: str) -> TableDifference:
    """The rows that the commits of a table after ``since`` up to ``until`` changed; both are requested times, ``since``
    is "" for the begin. Raises ConfigError, and as ``ChangeFeed``."""
    opened = HudiTable.open(chosen_one(settings, table).storage)
    completed = {one.requested_time: one.completion_time or "" for one in opened.timeline.completed()}
    for moment in filter(None, (since, until)):
        if moment not in completed:
            raise ConfigError(
                "the table has no such commit on its timeline", do_next="choose two of those listed", commit=moment
            )
    begin = position_at(opened, completed[since] if since else "")
    feed = ChangeFeed(opened, None, begin, completed[until] if until else None, batch_rows=ROWS)
    done = TableDifference()
    for batch in feed:
        for change in objects_of(batch):
            if len(done.lines) == ROWS:
                done.more = True
                return done
            before, after = change["before"] or {}, change["after"] or {}
            names = after or before
            values = [_changed_cell(name, before.get(name), after.get(name), change["op"]) for name in names]
            done.lines.append([change["commit"], _OPS[change["op"]], ", ".join(filter(None, values))])
    return done


def _changed_cell(name: str, before: object, after: object, op: str) -> str:
    """A value of a changed row; of an update with its former one, if that differs."""
    was, now = ("null" if value is None else _cell(value) for value in (before, after))
    if op == "u":  # what is shown may be the same: of long values the begin, of null what a text may be
        return f"{name}={was} -> {now}" if repr(before) != repr(after) else f"{name}={now}"
    return f"{name}={now if op == 'i' else was}"


def query_page(site: Site, asked: Asked) -> str:
    """The page. ``asked``: ``stream``, ``sql``, ``as_of``, ``run``, or ``table`` and ``key``, or
    ``table``, ``since``, ``until`` and ``diff``. Raises ConfigError."""
    watch = site.watch(asked)
    sql, as_of, table = (asked.get(name, "").strip() for name in ("sql", "as_of", "table"))
    key = asked.get("key", "")  # a text may begin or end with spaces
    since, until = asked.get("since", "").strip(), asked.get("until", "").strip()
    names = sorted(one.name for one in watch.view.tables.values())
    error, answer, pictures, split, lines, changed = "", None, list[PlanPicture](), list[str](), [], None
    try:
        if sql and asked.get("run"):
            query = planned(watch.conf, sql, as_of)
            table = _first_table(query, names)
            answer = run_query(watch.conf, sql, as_of)
            alone = answer.tally if len(query.tables) == 1 else None
            pictures = [plan_picture(one.plan, alone) for one in query.tables]
            split = [*map(str, query.split.parts), *(f"not bucket by bucket: {why}" for why in query.split.why_not)]
        if table and key:
            lines = list(histories(watch.settings, table, key))
        if table and asked.get("diff"):
            changed = difference(watch.settings, table, since, until)
    except LakeError as problem:
        error = error_words(problem)
    return rendered(
        "query.html",
        site,
        "query",
        stream=watch.settings.name,
        sql=sql or (first_query(table) if table else ""),
        as_of=as_of,
        answer=answer,
        plans=pictures,
        split=split,
        measures=MEASURES,
        error=error,
        table=table,
        key=key,
        histories=lines,
        changed=changed,
        since=since,
        until=until,
        names=names,
        moments=_moments_or_none(watch.settings, table),
    )


def _first_table(query: SqlQuery, names: Sequence[str]) -> str:
    """The first table of a query, as the lake calls it. ``names``: its tables, as far as they were looked at."""
    written = spelled(query.tables[0].names[0])
    return next((name for name in names if lower(name) == written), written)


def _moments_or_none(settings: Settings, table: str) -> list[str]:
    """The commits of a table; none of one that cannot be read, which the rest of the page says."""
    try:
        return moments(settings, table) if table else []
    except LakeError:
        return []
