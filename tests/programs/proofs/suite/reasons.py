"""Why a segment is not equal: what the documentation refuses, and what the connector's own records show."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from binlake.decode.changes import SourceTable
from binlake.position.record_reader import RecordReader
from binlake.schema.rules.judged import ClauseVerdict
from binlake.schema.rules.undetermined import WHOLE_ROWS
from hudilake.storage import open_storage
from hudilake.table.table import HudiTable
from tests.programs.oracle.comparison import Failure, StreamLake, general, home_of, undetermined
from tests.programs.oracle.exceptions import CASCADED, CHARSET, UNDETERMINED, UNMATCHED, ZERO_DATES
from tests.programs.oracle.recording import Recording
from tests.programs.proofs.part import Outcome
from tests.programs.proofs.rules import rule_of
from tests.programs.proofs.suite.delivered import (
    ALTERED_DATES,
    decodings,
    logged_alone,
    newest_otherwise,
    replaced_in,
)

_NOT_TAKEN = "a statement is refused"
_UNPARSED = "the connector cannot parse a statement and says so in its log"
_ROLLED_BACK = (
    "a transaction that the server rolled back comes as if it were committed, and then ROLLBACK as a statement"
)
_OTHERWISE = "the newest image of the row in the topic has another value than the server"
_XA = "rows of a prepared XA transaction that is rolled back come as if they were committed"
_LOGGED = "the topic has a row that the server has not, and nothing that deletes it"
_REAL = "a column declared as REAL, which is a DOUBLE, comes with 32 bits"
_ENUM = "the connector's definition of an ENUM or SET column has other values than the server's"
_DEFAULT = "the connector's definition of a column has another default, the bytes of the server's one read as UTF-8"
_NAMED = "the connector's definition of a table has another name, the bytes of the server's one read as UTF-8"
_NO_ENUM = "an ENUM or SET column that is declared BINARY comes as null"
_BINARY = "texts of the character set binary come as text, and no message says so"
_FORMER = "the connector does not take in CREATE OR REPLACE TABLE, and names columns by the former definition"
_MERGED = "rows that are written through a table of the engine MERGE come under its name, or not at all"
_MERGED_TEMPORARY = "rows that are written through a temporary table of the engine MERGE are in no log"
_NO_SUCH_ROW = "deletes of a table without a key that find no row: counted and named"
_ZERO_DATES = "dates with zeros are null, as source.zero_dates says"
_ZONE = "a statement converts TIMESTAMP values in its session's time zone, which the topic does not have"
_AS_STATEMENT = (
    "a change of rows is in the log as a statement alone (binlog_format was not ROW), and its table is named"
)
_EXCUSES = {
    CHARSET.name: (Outcome.LOST, CHARSET.reason),
    ZERO_DATES.name: (Outcome.LOST, ALTERED_DATES),
    UNDETERMINED.name: (Outcome.REFUSED, UNDETERMINED.reason),
    CASCADED.name: (Outcome.REFUSED, CASCADED.reason),
    UNMATCHED.name: (Outcome.WRONG, f"refused, and no page says so: {_NO_SUCH_ROW}"),
}
#: Beginnings of the kinds of failures that binlake tells itself.
_TOLD = (
    "quarantined:",
    "behind:",
    "not carried out:",
    "UnsupportedError",
    "ConfigError",
    "CorruptDataError",
    "BadInputError",
)
_XA_ROLLBACK = re.compile(r"\s*XA\s+ROLLBACK\b", re.IGNORECASE)
_SETS_ZONE = re.compile(r"\s*SET\b.*\btime_zone\b", re.IGNORECASE | re.DOTALL)
_REPLACED = re.compile(r"\s*CREATE\s+OR\s+REPLACE\s+TABLE\s+`?(\w+)`?", re.IGNORECASE)
_TEMPORARY = re.compile(r"\s*CREATE\s+(OR\s+REPLACE\s+)?TEMPORARY\b", re.IGNORECASE)
_UNION = re.compile(r"\bUNION\s*=\s*\(([^)]*)\)", re.IGNORECASE)
_UNMATCHED = "found no row of their content"


def excused_by(used: Counter[str], *, by_connector: bool = True) -> tuple[Outcome, str] | None:
    """The outcome and the reason of a comparison that the oracle excused; None if it excused nothing."""
    excuses = _EXCUSES if by_connector else _EXCUSES | {ZERO_DATES.name: (Outcome.REFUSED, _ZERO_DATES)}
    return next((reason for name, reason in excuses.items() if used[name]), None)


def named(stream: StreamLake) -> dict[str, dict[str, str]]:
    """What the lake cannot account for, as it says: table -> column (``WHOLE_ROWS`` for rows) -> words for its kind."""
    words: dict[str, dict[str, str]] = defaultdict(dict)
    for truth in stream.truth:
        home = home_of(stream, SourceTable(truth.database, truth.table))
        if home is not None and (home / ".hoodie" / "hoodie.properties").exists():
            recorded = RecordReader.newest_of(HudiTable.open(open_storage(str(home))))
            rulings = [ruling for entry in recorded.ddl or () for ruling in entry.rulings]
            for ruling in rulings:
                if ruling.verdict is ClauseVerdict.REFUSE:
                    words[str(truth)][WHOLE_ROWS] = f"{_NOT_TAKEN}: {general(ruling.text)}"
            for columns, excuse in zip(undetermined(stream, home), (UNDETERMINED, CASCADED), strict=True):
                words[str(truth)] |= dict.fromkeys(columns, excuse.reason)
                key = {column.lower() for column in truth.key}
                if columns and (not key or key & {column.lower() for column in columns}):  # rows cannot be told apart
                    words[str(truth)][WHOLE_ROWS] = excuse.reason
    for event in stream.told:
        for table in event.tables:
            if _UNMATCHED in (table.warning or ""):
                words[table.table].setdefault(WHOLE_ROWS, _NO_SUCH_ROW)
        for ddl in event.ddl:
            if ddl.instant is None and ddl.undetermined:  # there was no lake table
                told = any("as a statement" in one for one in ddl.undetermined)
                words[ddl.table].setdefault(WHOLE_ROWS, _AS_STATEMENT if told else UNDETERMINED.reason)
            for verdict in ddl.verdicts if ddl.instant is None else ():
                if verdict.startswith(refuses := f"{ClauseVerdict.REFUSE}: "):
                    words[ddl.table].setdefault(WHOLE_ROWS, f"{_NOT_TAKEN}: {general(verdict.removeprefix(refuses))}")
    return words


def reason_of(
    recording: Recording,
    failure: Failure,
    failures: Sequence[Failure],
    words: Mapping[str, Mapping[str, str]],
    unparsed: Sequence[str],
    *,
    in_zone: bool = False,
) -> tuple[Outcome, str]:
    """The outcome of a failure and its reason, in words that failures of its kind share. A refusal has a rule.

    Args:
        recording: what was played.
        failure: what differs.
        failures: all of the trial.
        words: see ``named``.
        unparsed: statements that the connector's log names.
        in_zone: whether the file has set a session's time zone.
    """
    outcome, reason = _documented(*_reason(recording, failure, failures, words, unparsed))
    if outcome is Outcome.WRONG and in_zone and failure.table in _zoned(recording):
        return Outcome.LOST, _ZONE
    return outcome, reason


def reason_without_connector(
    failure: Failure,
    failures: Sequence[Failure],
    words: Mapping[str, Mapping[str, str]],
    statements: Iterable[str] = (),
) -> tuple[Outcome, str]:
    """As ``reason_of``, of a stream that reads the server's binlog itself: nothing is lost on the way.

    ``statements``: those that were run.
    """
    reason = _said(failure, words)
    if reason is None and failure.table.rpartition(".")[2] in _merged(filter(_TEMPORARY.match, statements)):
        reason = _MERGED_TEMPORARY
    told = [other for other in failures if other.kind.startswith(_TOLD) and other.table in ("", failure.table)]
    if reason is None and told:
        reason = told[0].kind
    return _documented(*((Outcome.WRONG, failure.kind) if reason is None else (Outcome.REFUSED, reason)))


def _documented(outcome: Outcome, reason: str) -> tuple[Outcome, str]:
    if outcome is Outcome.REFUSED and rule_of(reason) is None:
        return Outcome.WRONG, f"refused, and no page says so: {reason}"
    return outcome, reason


def _said(failure: Failure, words: Mapping[str, Mapping[str, str]]) -> str | None:
    """Why binlake says itself that something differs."""
    if failure.kind.startswith(_TOLD):
        return failure.kind
    for column, reason in words.get(failure.table, {}).items():
        if column == WHOLE_ROWS or failure.detail.startswith(f"{column}: "):
            return reason
    return None


def _reason(
    recording: Recording,
    failure: Failure,
    failures: Sequence[Failure],
    words: Mapping[str, Mapping[str, str]],
    unparsed: Sequence[str],
) -> tuple[Outcome, str]:
    if unparsed:
        return Outcome.LOST, _UNPARSED
    if (said := _said(failure, words)) is not None:
        return Outcome.REFUSED, said
    if _rolls_back(recording):
        return Outcome.LOST, _ROLLED_BACK
    if any(_XA_ROLLBACK.match(statement.sql) for statement in recording.script.after):
        return Outcome.LOST, _XA
    if failure.table.rpartition(".")[2] in _merged(statement.sql for statement in recording.script.after):
        return Outcome.LOST, _MERGED
    if failure.kind.startswith("rows missing and extra") and failure.table in replaced_in(recording):
        return Outcome.LOST, CHARSET.reason
    single = re.fullmatch(r"column (\w+): double(?: unsigned)?(?: zerofill)? is float in the lake", failure.detail)
    if single and (failure.table, single[1]) in _reals(recording):
        return Outcome.LOST, _REAL
    if failure.kind.startswith("column:") and _is_binary(recording, failure):
        return Outcome.LOST, _BINARY
    if failure.table in _other_values(recording):
        return Outcome.LOST, _ENUM
    if failure.table in _without_values(recording):
        return Outcome.LOST, _NO_ENUM
    if failure.table in _formerly_named(recording):
        return Outcome.LOST, _FORMER
    extra = re.match(r"\{'missing': 0, 'extra': (\d+), 'duplicate': 0\}", failure.detail)
    if extra and logged_alone(recording)[failure.table] >= int(extra[1]):
        return Outcome.LOST, _LOGGED
    if failure.kind == "table missing" and _is_named_otherwise(recording, failure.table):
        return Outcome.LOST, _NAMED
    differing = re.match(r"(.*?): (\d+) differ: ", failure.detail)
    if differing and _defaulted(recording, failure.table, differing[1]) >= int(differing[2]):
        return Outcome.LOST, _DEFAULT
    if differing and newest_otherwise(recording)[failure.table, differing[1]] >= int(differing[2]):
        return Outcome.LOST, _OTHERWISE
    told = [other for other in failures if other.kind.startswith(_TOLD) and other.table in ("", failure.table)]
    return (Outcome.REFUSED, told[0].kind) if told else (Outcome.WRONG, failure.kind)


def sets_zone(recording: Recording) -> bool:
    """Whether a statement sets a session's time zone."""
    return any(_SETS_ZONE.match(statement.sql) for statement in recording.script.after)


def _zoned(recording: Recording) -> set[str]:
    """The tables with rows from before a statement that alters them, and a TIMESTAMP or DATETIME column since."""
    filled: set[str] = set()
    altered: set[str] = set()
    for record in recording.records:
        payload = json.loads(record.value)["payload"] if record.value is not None else {}
        if payload.get("after"):
            filled.add(f"{payload['source']['db']}.{payload['source']['table']}")
        altered |= {change["id"].replace('"', "") for change in payload.get("tableChanges") or ()} & filled
    timed = {str(t) for t in recording.truth if any(c.data_type in ("timestamp", "datetime") for c in t.columns)}
    return altered & timed


def _other_values(recording: Recording) -> set[str]:
    """The tables with an ENUM or SET column whose values are others in the connector's newest definition: it reads the
    text of a statement as UTF-8, whatever the session's character set was."""
    known = {
        (table, column["name"]): [value.strip("'") for value in column.get("enumValues") or ()]
        for table, column in _definitions(recording)
    }
    return {
        str(truth)
        for truth in recording.truth
        for column in truth.columns
        if (values := known.get((str(truth), column.name)))
        and values != re.findall(r"'((?:[^']|'')*)'", column.type.partition("(")[2])
    }


def _defaulted(recording: Recording, table: str, name: str) -> int:
    """How many cells of a column the server has filled with a default that the connector's definition has otherwise:
    in a session of another character set than UTF-8, since a topic names none."""
    known = {
        str(column["defaultValueExpression"])
        for defined, column in _definitions(recording)
        if (defined, column["name"]) == (table, name) and column.get("defaultValueExpression") is not None
    }
    cells = (
        cell
        for truth in recording.truth
        for column, *column_cells in zip(truth.columns, *truth.rows, strict=True)
        if (str(truth), column.name) == (table, name)
        for cell in column_cells
    )
    return sum(isinstance(cell, str) and cell not in known and bool(decodings(cell) & known) for cell in cells)


def _is_named_otherwise(recording: Recording, table: str) -> bool:
    """Whether the connector defines the table by another name alone; it leaves out the rows then, which the log has
    under the server's name."""
    defined = {name for name, _ in _definitions(recording)}
    sources = [json.loads(r.value)["payload"]["source"] for r in recording.records if r.topic and r.value]
    has_rows = any(f"{source['db']}.{source['table']}" == table for source in sources)
    return table not in defined and bool(decodings(table) & defined) and not has_rows


def _without_values(recording: Recording) -> set[str]:
    """The tables with an ENUM or SET column that is null in all rows of the topic, and in none at the server."""
    sent: dict[tuple[str, str], set[bool]] = defaultdict(set)
    for record in recording.records:
        payload = json.loads(record.value)["payload"] if record.topic is not None and record.value is not None else {}
        for name, value in (payload.get("after") or {}).items():
            sent[f"{payload['source']['db']}.{payload['source']['table']}", name].add(value is None)
    return {
        str(truth)
        for truth in recording.truth
        for number, column in enumerate(truth.columns)
        if column.data_type in ("enum", "set")
        and sent[str(truth), column.name] == {True}
        and all(row[number] is not None for row in truth.rows)
    }


def _formerly_named(recording: Recording) -> set[str]:
    """The tables that were replaced by a statement without a definition in the topic, and have rows since."""
    replaced: set[str] = set()
    named: set[str] = set()
    for record in recording.records:
        payload = json.loads(record.value)["payload"] if record.value is not None else {}
        statement = _REPLACED.match(payload.get("ddl") or "")
        if statement and not payload.get("tableChanges"):
            replaced.add(f"{payload['databaseName']}.{statement[1]}")
        if payload.get("after"):
            named |= replaced & {f"{payload['source']['db']}.{payload['source']['table']}"}
    return named


def _reals(recording: Recording) -> set[tuple[str, str]]:
    """The tables and columns that the connector's definitions call REAL, UNSIGNED and ZEROFILL or not."""
    return {
        (table, column["name"]) for table, column in _definitions(recording) if column["typeName"].split()[0] == "REAL"
    }


def _is_binary(recording: Recording, failure: Failure) -> bool:
    """Whether the connector's definition of the column has the character set binary, and the lake has its text."""
    stored = re.fullmatch(r"column (\w+): \w*(?:binary|blob)(?:\(\d+\))? is string in the lake", failure.detail)
    defined = {(table, column["name"]): column["charsetName"] or "" for table, column in _definitions(recording)}
    return stored is not None and defined.get((failure.table, stored[1]), "").lower() == "binary"


def _definitions(recording: Recording) -> Iterator[tuple[str, dict[str, Any]]]:
    """The columns of the connector's definitions, each with its table, as they come."""
    for record in recording.records:
        payload = json.loads(record.value)["payload"] if record.value is not None else {}
        for change in payload.get("tableChanges") or ():
            for column in (change.get("table") or {}).get("columns", ()):
                yield change["id"].replace('"', ""), column


def _merged(statements: Iterable[str]) -> set[str]:
    """The names of the tables below those of the engine MERGE."""
    unions = map(_UNION.search, statements)
    return {name for union in unions if union is not None for name in re.findall(r"\w+", union[1])}


def _rolls_back(recording: Recording) -> bool:
    """Whether the topic of statements has a ROLLBACK, whose transaction came before as if it were committed."""
    statements = (record.value for record in recording.records if record.topic is None and record.value is not None)
    return any(str(json.loads(value)["payload"]["ddl"]).strip().upper() == "ROLLBACK" for value in statements)
