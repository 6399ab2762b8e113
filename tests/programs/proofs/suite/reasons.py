"""Why a segment is not equal: what the documentation refuses, and what the connector's own records show."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from binlake.stream.monitoring.progress import ProgressEvent
from tests.programs.oracle.comparison import Failure
from tests.programs.oracle.exceptions import CASCADED, CHARSET, UNDETERMINED, ZERO_DATES
from tests.programs.proofs.part import Outcome

ALTERED_DATES = "dates with a 0 or a day too many, and years below 100, come as others or as null"
_UNPARSED = "the connector cannot parse a statement and says so in its log"
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


def named(events: Iterable[ProgressEvent]) -> dict[str, str]:
    """What the stream said of tables whose content it cannot account for, in words that such tables share."""
    words: dict[str, str] = {}
    for event in events:
        for ddl in event.ddl:
            if ddl.undetermined:
                words[ddl.table] = UNDETERMINED.reason
        for table in event.tables:
            if _UNMATCHED in (table.warning or ""):
                words[table.table] = "deletes of a table without a key that find no row: counted and named"
    return words


def reason_of(
    failure: Failure, failures: Sequence[Failure], words: Mapping[str, str], unparsed: Sequence[str]
) -> tuple[Outcome, str]:
    """The outcome of a failure and its reason, in words that failures of its kind share.

    Args:
        failure: what differs.
        failures: all of the trial.
        words: see ``named``.
        unparsed: statements that the connector's log names.
    """
    if unparsed:
        return Outcome.LOST, _UNPARSED
    if failure.kind.startswith(_TOLD):
        return Outcome.REFUSED, failure.kind
    if failure.table in words:
        return Outcome.REFUSED, words[failure.table]
    told = [other for other in failures if other.kind.startswith(_TOLD) and other.table in ("", failure.table)]
    return (Outcome.REFUSED, told[0].kind) if told else (Outcome.WRONG, failure.kind)
