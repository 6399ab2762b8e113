"""The server's rows as the connector delivers them, where it cannot express a value.

Measured with Debezium 3.4 and MariaDB 11.4, in the topics of recordings: a date with year, month or day 0 comes as
null, or as the epoch where NULL is not allowed and in TIMESTAMPs; a day that its month has not (ALLOW_INVALID_DATES) as
the epoch; of a year below 100 the connector takes that MySQL means 1970 to 2069 (``enable.time.adjuster``); YEAR 0
comes as 1900. A column that was declared as BOOL comes as true and false, whatever number it holds.
"""

from __future__ import annotations

import calendar
import contextlib
import json
import re
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import replace

from demo.truth import Cell, TruthColumn, TruthTable
from tests.programs.oracle.recording import Recording

ALTERED_DATES = "dates with a 0 or a day too many, and years below 100, come as others or as null"
ALTERED_TEXTS = "text is decoded with another character set than its table's"
ALTERED_BOOLEANS = "a column declared as BOOL comes as true and false, whatever number it holds"
_DATE = re.compile(r"(\d{4})-(\d\d)-(\d\d)(.*)")
_SCALED = re.compile(r"\(\d+,(\d+)\)")
_REPLACEMENT = "\ufffd"
_EPOCH = "1970-01-01"
#: What latin1 of MariaDB has beyond cp1252.
_UNDEFINED = "\x81\x8d\x8f\x90\x9d"
#: Of MariaDB's utf16 and ucs2, utf16le, and utf32.
_WIDE = ("utf-16-be", "utf-16-le", "utf-32-be")
_WHOLE = frozenset({"tinyint", "smallint", "mediumint", "int", "bigint"})
_TEXTS = frozenset({"char", "varchar", "tinytext", "text", "mediumtext", "longtext"})


def as_delivered(recording: Recording) -> tuple[Recording, Counter[str]]:
    """The recording with its tables as they come, and how many cells the connector alters, by reason."""
    altered: Counter[str] = Counter()
    booleans, texts = _booleans(recording), _texts(recording)
    tables = tuple(_in_full(_table(table, booleans, texts, altered), recording) for table in recording.truth)
    return replace(recording, truth=tables), +altered


def _table(
    truth: TruthTable, booleans: Collection[tuple[str, str]], texts: set[str], altered: Counter[str]
) -> TruthTable:
    rows: list[tuple[Cell, ...]] = []
    for row in truth.rows:
        cells: list[Cell] = []
        for column, cell in zip(truth.columns, row, strict=True):
            if column.data_type == "tinyint" and (str(truth), column.name) in booleans:
                cells.append(cell if cell is None else str(int(cell != "0")))
                altered[ALTERED_BOOLEANS] += cells[-1] != cell
            elif isinstance(cell, str) and cell not in texts and (sent := decodings(cell) & texts):
                cells.append(min(sent))
                altered[ALTERED_TEXTS] += 1
            else:
                cells.append(_moment(column, cell))
                altered[ALTERED_DATES] += cells[-1] != cell
        rows.append(tuple(cells))
    return replace(truth, rows=rows)


def _in_full(truth: TruthTable, recording: Recording) -> TruthTable:
    """The table with its DOUBLE(m,d) as they are stored, where the topic has one value that is printed so."""
    digits = {column.name: _SCALED.search(column.type) for column in truth.columns if column.data_type == "double"}
    scales = {name: int(match[1]) for name, match in digits.items() if match is not None}
    sent: dict[tuple[str, str], set[str]] = {}
    for record in recording.records if scales else ():
        payload = json.loads(record.value)["payload"] if record.topic is not None and record.value is not None else {}
        if payload and f"{payload['source']['db']}.{payload['source']['table']}" == str(truth):
            cells = {name: (payload.get("after") or {}).get(name) for name in scales}
            for name, value in cells.items():
                if isinstance(value, float):
                    sent.setdefault((name, f"{value:.{scales[name]}f}"), set()).add(repr(value))
    rows = [
        tuple(
            min(values) if len(values := sent.get((column.name, str(cell)), ())) == 1 else cell
            for column, cell in zip(truth.columns, row, strict=True)
        )
        for row in truth.rows
    ]
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


def replaced_in(recording: Recording) -> set[str]:
    """The tables in whose rows the topic has the sign for a byte that cannot be decoded, and the server none."""
    tables: set[str] = set()
    for record in recording.records:
        payload = json.loads(record.value)["payload"] if record.topic is not None and record.value is not None else {}
        cells = [cell for image in (payload.get("before"), payload.get("after")) for cell in (image or {}).values()]
        if any(isinstance(cell, str) and _REPLACEMENT in cell for cell in cells):
            tables.add(f"{payload['source']['db']}.{payload['source']['table']}")
    for table in recording.truth:
        if any(isinstance(cell, str) and _REPLACEMENT in cell for row in table.rows for cell in row):
            tables.discard(str(table))
    return tables


def _texts(recording: Recording) -> set[str]:
    """All texts in rows of the topic."""
    texts: set[str] = set()
    for record in recording.records:
        payload = json.loads(record.value)["payload"] if record.topic is not None and record.value is not None else {}
        for image in (payload.get("before"), payload.get("after")):
            texts |= {cell for cell in (image or {}).values() if isinstance(cell, str)}
    return texts


def decodings(text: str) -> set[str]:
    """What a text is whose bytes in MariaDB's latin1, or in 16 or 32 bits a sign, are taken for UTF-8."""
    texts: set[str] = set()
    with contextlib.suppress(UnicodeError):
        texts.add(
            b"".join(sign.encode("cp1252") if sign not in _UNDEFINED else bytes([ord(sign)]) for sign in text).decode()
        )
    for charset in _WIDE:
        with contextlib.suppress(UnicodeError):
            texts.add(text.encode(charset).decode())
    return texts - {text}


def newest_otherwise(recording: Recording) -> Counter[tuple[str, str]]:
    """How many cells of a table's column have another whole number or text in the newest image of their row in the
    topic than at the server, though no statement about the table came after that image. Tables with a key alone."""
    images, otherwise = _newest_images(recording), Counter[tuple[str, str]]()
    for table in recording.truth:
        for row in table.rows if table.key else ():
            cells = {column.name: cell for column, cell in zip(table.columns, row, strict=True)}
            image = images.get((str(table), tuple(str(cells[column]) for column in table.key)), {})
            for column in table.columns:
                sent = image.get(column.name, cells[column.name])
                simple = column.data_type in (
                    _WHOLE if isinstance(sent, int) else _TEXTS if isinstance(sent, str) else ()
                )
                otherwise[str(table), column.name] += simple and str(sent) != cells[column.name]
    return +otherwise


def logged_alone(recording: Recording) -> Counter[str]:
    """How many rows of each table with a key are in the topic, and not at the server, though nothing in the topic
    deletes them."""
    tables = {str(table): table for table in recording.truth if table.key}
    there: set[tuple[str, tuple[str, ...]]] = set()
    for name, table in tables.items():
        places = [[column.name for column in table.columns].index(column) for column in table.key]
        there |= {(name, tuple(str(row[place]) for place in places)) for row in table.rows}
    return Counter(name for name, key in _newest_images(recording) if (name, key) not in there)


def _newest_images(recording: Recording) -> dict[tuple[str, tuple[str, ...]], Mapping[str, object]]:
    """The newest image of each row by table and key, without those from before a statement about the table."""
    images: dict[tuple[str, tuple[str, ...]], Mapping[str, object]] = {}
    tables = {str(table): table for table in recording.truth if table.key}
    for record in recording.records:
        payload = json.loads(record.value)["payload"] if record.value is not None else {}
        for change in payload.get("tableChanges") or ():
            altered = change["id"].replace('"', "")
            images = {place: image for place, image in images.items() if place[0] != altered}
        if record.topic is None or not payload:
            continue
        name = f"{payload['source']['db']}.{payload['source']['table']}"
        for image, stays in ((payload.get("before"), False), (payload.get("after"), True)):
            if name in tables and image:
                place = name, tuple(str(image.get(column)) for column in tables[name].key)
                images.pop(place, None)
                images |= {place: image} if stays else {}
    return images


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
