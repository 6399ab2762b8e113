"""Plays the recordings of a file into binlake, and says what became of the file."""

from __future__ import annotations

import itertools
import operator
import re
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from tests.programs.oracle.forms import Form
from tests.programs.oracle.recording import Recording
from tests.programs.oracle.trial import played
from tests.programs.proofs.part import Outcome, Verdict
from tests.programs.proofs.suite.delivered import as_delivered
from tests.programs.proofs.suite.reasons import excused_by, named, reason_of, sets_zone
from tests.programs.proofs.suite.recorder import Run

SEVERITY = (Outcome.EQUAL, Outcome.REFUSED, Outcome.LOST, Outcome.WRONG)


@dataclass(frozen=True)
class Segment:
    """What became of a recording. ``keyed``: whether a table with a key has a row event. ``carried``: whether the lake
    holds all that the topic carries, though that may be less than the server has."""

    name: str
    outcome: Outcome
    reason: str
    detail: str
    keyed: bool
    carried: bool = False


KEYED = "a row event in a table with a key"
CARRIED = f"{KEYED}, and all equal that the topic carries"


def judged(run: Run) -> tuple[Verdict, list[Segment]]:
    """The verdict of a file, which is the worst of its segments', and these."""
    zoned = itertools.accumulate((sets_zone(recording) for recording in run.recordings), operator.or_)
    segments = [
        _segment(recording, unparsed, in_zone=in_zone)
        for recording, unparsed, in_zone in zip(run.recordings, run.unparsed, zoned, strict=True)
        if _has_rows(recording)
    ]
    segments += [Segment(f"{run.name}#died", Outcome.LOST, _death(why), why, True) for why in run.deaths]
    return verdict_of(run.name, run.end, segments), segments


def verdict_of(name: str, end: str, segments: Sequence[Segment]) -> Verdict:
    """The verdict of a file. ``end``: why it was given up, or nothing."""
    if not segments:
        return Verdict(name, Outcome.SKIPPED, _general_end(end) or "no row in any table at any stop")
    worst = max(segments, key=lambda segment: SEVERITY.index(segment.outcome))
    counts = Counter(segment.outcome.value for segment in segments)
    detail = "; ".join(f"{count} segments {outcome}" for outcome, count in counts.items())
    keyed = "with" if any(segment.keyed for segment in segments) else "only without"
    reason = worst.reason or f"tables {keyed} a key"
    if worst.detail:
        detail += f"; {worst.name}: {worst.detail}"
    return Verdict(name, worst.outcome, reason, detail[:1500], tuple(_tags(name, segments)))


def _tags(name: str, segments: Sequence[Segment]) -> Iterator[str]:
    if any(segment.keyed for segment in segments):
        yield KEYED
        yield f"{KEYED}, in {name.removeprefix('suite/').partition('/')[0]}"
        if all(segment.carried for segment in segments):
            yield CARRIED


def _segment(recording: Recording, unparsed: Sequence[str], *, in_zone: bool) -> Segment:
    keyed = any(record.key is not None for record in recording.records if record.topic is not None)
    delivered, altered = as_delivered(recording)
    worst = Segment(recording.name, Outcome.EQUAL, "", "", keyed, carried=True)
    if altered:
        worst = replace(worst, outcome=Outcome.LOST, reason=min(altered), detail=f"{altered.total()} cells")
    for way, form in _trials(recording):
        with played(delivered, way, form) as (stream, trial):
            words = named(stream) if trial.failures else {}
        excused = excused_by(trial.excuses.used)
        refused = excused is not None and excused[0] is Outcome.REFUSED
        worst = replace(worst, carried=worst.carried and not trial.failures and not refused)
        for failure in trial.failures:
            outcome, reason = reason_of(recording, failure, trial.failures, words, unparsed, in_zone=in_zone)
            if SEVERITY.index(outcome) > SEVERITY.index(worst.outcome):
                detail = f"{way}, {form}: {failure.kind} | {failure.table} | {failure.detail}"
                worst = replace(worst, outcome=outcome, reason=reason, detail=detail)
        if excused is not None and SEVERITY.index(excused[0]) > SEVERITY.index(worst.outcome):
            worst = replace(worst, outcome=excused[0], reason=excused[1], detail=str(dict(trial.excuses.used)))
    return worst


def _trials(recording: Recording) -> Iterator[tuple[str, Form]]:
    """From a backlog, live, or with deaths; ways and forms take turns."""
    number = zlib.crc32(recording.name.encode())
    forms = tuple(Form)
    yield ("backlog", "live", "backlog", "kills")[number // 3 % 4], forms[number % 3]


def _has_rows(recording: Recording) -> bool:
    return any(record.topic is not None for record in recording.records)


def _death(why: str) -> str:
    general = re.sub(r"\d+|'[^']*'|`[^`]*`|\"[^\"]*\"|\[[^]]*\]", "N", why)
    return f"the connector ends: {general[:90]}"


def _general_end(end: str) -> str:
    return re.sub(r"(die|skip):.*", r"the file ends itself (\1)", end, flags=re.DOTALL)
