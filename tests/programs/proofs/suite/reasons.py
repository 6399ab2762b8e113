"""Why a segment is not equal: what the documentation refuses, and what the connector's own records show."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from binlake.decode.changes import SourceTable
from binlake.position.record_reader import RecordReader
from binlake.schema.rules.judged import ClauseVerdict
from binlake.schema.rules.undetermined import WHOLE_ROWS
from hudilake.storage import open_storage
from hudilake.table.table import HudiTable
from tests.programs.oracle.comparison import Failure, home_of, undetermined
from tests.programs.oracle.exceptions import CASCADED, CHARSET, UNDETERMINED, ZERO_DATES
from tests.programs.oracle.play import Stream
from tests.programs.oracle.recording import Recording
from tests.programs.proofs.part import Outcome
from tests.programs.proofs.suite.delivered import ALTERED_DATES

_UNPARSED = "the connector cannot parse a statement and says so in its log"
_ROLLED_BACK = (
    "a transaction that the server rolled back comes as if it were committed, and then ROLLBACK as a statement"
)
_EXCUSES = {
    CHARSET.name: (Outcome.LOST, CHARSET.reason),
    ZERO_DATES.name: (Outcome.LOST, ALTERED_DATES),
    UNDETERMINED.name: (Outcome.REFUSED, UNDETERMINED.reason),
    CASCADED.name: (Outcome.REFUSED, CASCADED.reason),
}
#: Beginnings of the kinds of failures that binlake tells itself.
_TOLD = ("quarantined:", "behind:", "not carried out:", "UnsupportedError", "ConfigError", "CorruptDataError")
_UNMATCHED = "found no row of their content"


def excused_by(used: Counter[str]) -> tuple[Outcome, str] | None:
    """The outcome and the reason of a comparison that the oracle excused; None if it excused nothing."""
    return next((reason for name, reason in _EXCUSES.items() if used[name]), None)


def named(stream: Stream) -> dict[str, dict[str, str]]:
    """What the lake cannot account for, as it says: table -> column (``WHOLE_ROWS`` for rows) -> words for its kind."""
    words: dict[str, dict[str, str]] = defaultdict(dict)
    for truth in stream.recording.truth:
        home = stream.place / home_of(stream, SourceTable(truth.database, truth.table))
        if (home / ".hoodie" / "hoodie.properties").exists():
            recorded = RecordReader.newest_of(HudiTable.open(open_storage(str(home))))
            rulings = [ruling for entry in recorded.ddl or () for ruling in entry.rulings]
            if any(ruling.verdict is ClauseVerdict.REFUSE for ruling in rulings):
                words[str(truth)][WHOLE_ROWS] = "a statement that is refused, with its reason in the lake's commits"
            for columns, excuse in zip(undetermined(stream, home), (UNDETERMINED, CASCADED), strict=True):
                words[str(truth)] |= dict.fromkeys(columns, excuse.reason)
                if columns and not truth.key:  # its rows are compared as a whole
                    words[str(truth)][WHOLE_ROWS] = excuse.reason
    for event in stream.told:
        for table in event.tables:
            if _UNMATCHED in (table.warning or ""):
                words[table.table][WHOLE_ROWS] = "deletes of a table without a key that find no row: counted and named"
    return words


def reason_of(
    recording: Recording,
    failure: Failure,
    failures: Sequence[Failure],
    words: Mapping[str, Mapping[str, str]],
    unparsed: Sequence[str],
) -> tuple[Outcome, str]:
    """The outcome of a failure and its reason, in words that failures of its kind share.

    Args:
        recording: what was played.
        failure: what differs.
        failures: all of the trial.
        words: see ``named``.
        unparsed: statements that the connector's log names.
    """
    if unparsed:
        return Outcome.LOST, _UNPARSED
    if failure.kind.startswith(_TOLD):
        return Outcome.REFUSED, failure.kind
    for column, reason in words.get(failure.table, {}).items():
        if column == WHOLE_ROWS or failure.detail.startswith(f"{column}: "):
            return Outcome.REFUSED, reason
    if _rolls_back(recording):
        return Outcome.LOST, _ROLLED_BACK
    told = [other for other in failures if other.kind.startswith(_TOLD) and other.table in ("", failure.table)]
    return (Outcome.REFUSED, told[0].kind) if told else (Outcome.WRONG, failure.kind)


def _rolls_back(recording: Recording) -> bool:
    """Whether the topic of statements has a ROLLBACK, whose transaction came before as if it were committed."""
    statements = (record.value for record in recording.records if record.topic is None and record.value is not None)
    return any(str(json.loads(value)["payload"]["ddl"]).strip().upper() == "ROLLBACK" for value in statements)
