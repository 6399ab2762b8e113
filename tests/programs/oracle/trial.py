"""One recording played in one way: the lake is made, compared and removed."""

from __future__ import annotations

import contextlib
import random
import tempfile
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from hudilake.errors import LakeError
from tests.programs.oracle.comparison import Failure, crashed, failures
from tests.programs.oracle.exceptions import Excuses
from tests.programs.oracle.forms import Form, encoding
from tests.programs.oracle.play import Stream, play
from tests.programs.oracle.recording import Recording


@dataclass(frozen=True)
class Trial:
    """What came of a recording in a way and a form: one of ``Form``, or "binlog".

    ``excuses``: the exceptions that applied. ``named``: why other differences are no failures: binlake says so itself.
    """

    recording: Recording
    way: str
    form: str
    failures: tuple[Failure, ...]
    excuses: Excuses
    named: tuple[str, ...] = ()

    def lines(self) -> list[str]:
        """In words."""
        head = f"{self.recording.name}, {self.way}, {self.form}: {'differs' if self.failures else 'equal'}"
        return [head, *(f"  {f.kind} | {f.table} | {f.detail}" for f in self.failures)]


@contextlib.contextmanager
def played(recording: Recording, way: str, form: str = Form.PLAIN, seed: int = 0) -> Iterator[tuple[Stream, Trial]]:
    """A lake that holds the recording, until the end of the block.

    Args:
        recording: what is played.
        way: see play.
        form: of the records.
        seed: decides portions, deaths and the number of partitions.
    """
    draw = random.Random(f"{recording.name} {way} {seed}")
    with (
        tempfile.TemporaryDirectory(prefix="oracle-lake-", ignore_cleanup_errors=True) as place,
        encoding(Form(form)) as encoder,
    ):
        stream = Stream(recording, Path(place), encoder, draw, draw.choice((1, 1, 3)))
        try:
            excuses = Excuses()
            yield stream, Trial(recording, way, form, tuple(_failures(stream, way, excuses)), excuses)
        finally:
            stream.stop()


def tried(recording: Recording, way: str, form: str = Form.PLAIN, seed: int = 0) -> Trial:
    """Play a recording and compare."""
    with played(recording, way, form, seed) as (_, trial):
        return trial


def _failures(stream: Stream, way: str, excuses: Excuses) -> list[Failure]:
    try:
        play(stream, way)
        return failures(stream, excuses)
    except Exception as error:
        return [broken(error)]


def broken(error: Exception) -> Failure:
    """The failure of a stream that ended with an error, which ours may be."""
    if isinstance(error, LakeError):
        return crashed(error)
    ours = [f for f in traceback.extract_tb(error.__traceback__) if "/pipeline/" in f.filename]
    where = f"{Path(ours[-1].filename).name}:{ours[-1].name}" if ours else "the test"
    return Failure(f"broke: {type(error).__name__} in {where}", "", f"{error}, in {where}")
