"""The server's rows as the connector delivers them, where it cannot express a value.

Measured with Debezium 3.4 and MariaDB 11.4, in the topics of recordings: a date with year, month or day 0 comes as
null, or as the epoch where NULL is not allowed and in TIMESTAMPs; a day that its month has not (ALLOW_INVALID_DATES) as
the epoch; of a year below 100 the connector takes that MySQL means 1970 to 2069 (``enable.time.adjuster``); YEAR 0
comes as 1900. A column that was declared as BOOL comes as true and false, whatever number it holds.
"""

from __future__ import annotations

import calendar
import json
import re
from collections import Counter
from collections.abc import Collection
from dataclasses import replace

from demo.truth import Cell, TruthColumn, TruthTable
from tests.programs.oracle.recording import Recording

ALTERED_DATES = "dates with a 0 or a day too many, and years below 100, come as others or as null"
ALTERED_BOOLEANS = "a column declared as BOOL comes as true and false, whatever number it holds"
_DATE = re.compile(r"(\d{4})-(\d\d)-(\d\d)(.*)")
_EPOCH = "1970-01-01"


def as_delivered(recording: Recording) -> tuple[Recording, Counter[str]]:
    """The recording with its tables as they come, and how many cells the connector alters, by reason."""
    altered: Counter[str] = Counter()
    booleans = _booleans(recording)
    tables = tuple(_table(table, booleans, altered) for table in recording.truth)
    return replace(recording, truth=tables), +altered


def _table(truth: TruthTable, booleans: Collection[tuple[str, str]], altered: Counter[str]) -> TruthTable:
    rows: list[tuple[Cell, ...]] = []
    for row in truth.rows:
        cells: list[Cell] = []
        for column, cell in zip(truth.columns, row, strict=True):
            if column.data_type == "tinyint" and (str(truth), column.name) in booleans:
                cells.append(cell if cell is None else str(int(cell != "0")))
                altered[ALTERED_BOOLEANS] += cells[-1] != cell
            else:
                cells.append(_moment(column, cell))
                altered[ALTERED_DATES] += cells[-1] != cell
        rows.append(tuple(cells))
    return replace(truth, rows=rows)


def _booleans(recording: Recording) -> set[tuple[str, str]]:
    """The tables and columns of which a row in the topic has true or false."""
    places: set[tuple[str, str]] = set()
    for record in recording.records:
        payload = json.loads(record.value)["payload"] if record.topic is not None and record.value is not None else {}
        for image in (payload.get("before"), payload.get("after")):
            named = [name for name, value in (image or {}).items() if isinstance(value, bool)]
            places |= {(f"{payload['source']['db']}.{payload['source']['table']}", name) for name in named}
    return places


def _moment(column: TruthColumn, cell: Cell) -> Cell:
    if not isinstance(cell, str):
        return cell
    if column.data_type == "year":
        return "1900" if cell == "0000" else cell
    date = _DATE.fullmatch(cell) if column.data_type in ("date", "datetime", "timestamp") else None
    if date is None:
        return cell
    year, time = int(date[1]), date[4]
    midnight = _EPOCH + re.sub(r"\d", "0", time)
    if not (year and int(date[2]) and int(date[3])):
        return None if column.nullable and column.data_type != "timestamp" else midnight
    if int(date[3]) > calendar.monthrange(year, int(date[2]))[1]:
        return midnight
    if year < 100:
        return f"{year + (2000 if year < 70 else 1900)}-{date[2]}-{date[3]}{time}"
    return cell
