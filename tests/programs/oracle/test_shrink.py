"""Scripts become small, and what makes them fail stays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from tests.programs.oracle.comparison import Failure
from tests.programs.oracle.desk import Written
from tests.programs.oracle.exceptions import Excuses
from tests.programs.oracle.forms import Form
from tests.programs.oracle.recording import Recording
from tests.programs.oracle.script import Script, Statement
from tests.programs.oracle.services import Round
from tests.programs.oracle.shrink import shrunk
from tests.programs.oracle.trial import Trial


def record(authors: Sequence[Written]) -> Round:
    """A source at which an INSERT is refused without its table."""
    recordings = []
    for author in authors:
        words = [s.sql for s in author.script.statements]
        script = author.script
        if "CREATE" not in words:
            after = tuple(replace(s, error="no such table") if s.sql == "INSERT" else s for s in script.after)
            script = replace(script, after=after)
        recordings.append(Recording(script, "o1_000", (), (), {}))
    return Round(recordings)


def judge(recording: Recording, way: str, form: str, needed: frozenset[str]) -> Trial:
    """It fails if the accepted statements hold all that is needed; another failure is always there."""
    told = [Failure("another", "t", "")]
    if needed <= {s.sql for s in recording.script.accepted.statements}:
        told.append(Failure("rows missing", "t", ""))
    return Trial(recording, way, form, tuple(told), Excuses())


@pytest.mark.parametrize("count", [1, 2, 7, 60])
@pytest.mark.parametrize("needed", [{"CREATE", "INSERT"}, {"CREATE", "filler 0", "INSERT", "last"}])
def test_only_what_is_needed_stays(count: int, needed: set[str]) -> None:
    filler = tuple(Statement(f"filler {number}") for number in range(count))
    script = Script("seed_1", (Statement("CREATE"), *filler), (*filler[1:], Statement("INSERT"), Statement("last")))
    whole = Trial(
        Recording(script, "o1_000", (), (), {}), "live", Form.PLAIN, (Failure("rows missing", "t", ""),), Excuses()
    )
    [small] = shrunk([whole], record, retry=lambda r, way, form: judge(r, way, form, frozenset(needed)))
    assert {s.sql for s in small.recording.script.accepted.statements} == needed
    assert small.recording.script.before[0].sql == "CREATE"
    assert (small.recording.name, small.failures[0].kind) == ("seed_1", "rows missing")
