"""The server's rows as the connector delivers them: dates and years that Java's calendar has not as MySQL has them.

Measured with Debezium 3.4 and MariaDB 11.4, in the topics of recordings: a date with year, month or day 0 comes as
null, or as the epoch where NULL is not allowed and in TIMESTAMPs; a day that its month has not (ALLOW_INVALID_DATES) as
the epoch; of a year below 100 the connector takes that MySQL
means 1970 to 2069 (``enable.time.adjuster``); YEAR 0 comes as 1900.
"""

from __future__ import annotations

import calendar
import re
from dataclasses import replace

from demo.truth import Cell, TruthColumn, TruthTable

_DATE = re.compile(r"(\d{4})-(\d\d)-(\d\d)(.*)")
_EPOCH = "1970-01-01"


def as_delivered(truth: TruthTable) -> tuple[TruthTable, int]:
    """The table as it comes, and how many of its cells the connector alters."""
    altered = 0
    rows = []
    for row in truth.rows:
        cells = tuple(_delivered(column, cell) for column, cell in zip(truth.columns, row, strict=True))
        altered += sum(one != other for one, other in zip(cells, row, strict=True))
        rows.append(cells)
    return (replace(truth, rows=rows) if altered else truth), altered


def _delivered(column: TruthColumn, cell: Cell) -> Cell:
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
