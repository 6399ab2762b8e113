"""Reads the messages of a chunk that look alike by templates, and keeps those that are left."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from binlake.decode.quarantine import Buffer
from binlake.decode.templates.cells import TemplateCells
from binlake.decode.templates.kernel import PADDING, scan, words_of
from binlake.decode.templates.template import Template
from binlake.decode.templates.value_kernel import ABSENT, INT, TEXT

_I64 = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]
#: Templates are learned while they read messages: after so many that read less than this share, the rest is left.
#: Tables, statements and forms (with and without a before image) have templates of their own.
_MOST_IN_VAIN = 16
#: The same for messages that have no template.
_MOST_WITHOUT = 64
_LEAST_SHARE = 1 / 256
_MOST_TEMPLATES = 100
NO_TEMPLATE = -1
_MARKS = 4

#: Makes the template of a message; None if it has none. The slots of columns may grow.
Learn = Callable[[Buffer, dict[str, int]], Template | None]


@dataclass
class TemplatePass:
    """The messages, the arrays that the kernel fills (see ``kernel.scan``), and the templates so far.

    Attributes:
        joined: all messages; message ``i`` lies at ``starts[i]`` to ``ends[i]``. text: the same as an array.
        template: by message, the index of its template; NO_TEMPLATE if none reads it.
        slots: of the columns. first_column: how many slots the head has.
    """

    joined: bytes
    text: npt.NDArray[np.uint8]
    starts: _I64
    ends: _I64
    what: npt.NDArray[np.int8]
    value: _I64
    length: npt.NDArray[np.int32]
    marks: _I64
    template: npt.NDArray[np.int8]
    templates: list[Template]
    slots: dict[str, int]
    first_column: int

    @staticmethod
    def of(payloads: Sequence[Buffer], learn: Learn, first_column: int, slots: dict[str, int]) -> TemplatePass | None:
        """Read the messages that look alike; None if no message has a template. ``slots``: of columns known before."""
        reading: TemplatePass | None = None
        left = np.arange(len(payloads))
        in_vain = without = templates = 0
        while len(left) and in_vain < _MOST_IN_VAIN and without < _MOST_WITHOUT and templates < _MOST_TEMPLATES:
            template = learn(payloads[left[0]], slots)
            if template is None:
                left = left[1:]
                without += 1
                continue
            templates += 1
            reading = reading or TemplatePass.over(payloads, first_column, slots)
            there = len(left)
            left = reading._read(left, template)
            in_vain += (there - len(left)) < len(payloads) * _LEAST_SHARE
        return reading

    @staticmethod
    def over(
        payloads: Sequence[Buffer],
        first_column: int,
        slots: dict[str, int],
        *,
        held: int = 0,
        skipped: int = 0,
        behind: bytes = b"",
    ) -> TemplatePass:
        """The messages, none of them read yet.

        Args:
            payloads: n messages.
            first_column, slots: of the pass.
            held: how many slots have arrays; a template adds those that it needs.
            skipped: the bytes of each message before what is read.
            behind: a text to put behind all messages.
        """
        count = len(payloads)
        ends = np.cumsum(np.fromiter(map(len, payloads), dtype=np.int64, count=count))
        starts = np.concatenate([np.zeros(1, dtype=np.int64), ends[:-1]]) + skipped
        joined = b"".join([*payloads, behind, PADDING])
        return TemplatePass(
            joined=joined,
            text=np.frombuffer(joined, dtype=np.uint8),
            starts=starts,
            ends=ends,
            what=np.zeros((held, count), dtype=np.int8),
            value=np.zeros((held, count), dtype=np.int64),
            length=np.zeros((held, count), dtype=np.int32),
            marks=np.zeros((_MARKS, count), dtype=np.int64),
            template=np.full(count, NO_TEMPLATE, dtype=np.int8),
            templates=[],
            slots=slots,
            first_column=first_column,
        )

    def _read(self, rows: _I64, template: Template) -> _I64:
        """Read the rows that match the template; returns the others."""
        missing = self.first_column + len(self.slots) - len(self.what)
        if missing:
            self.what, self.value, self.length = (
                np.concatenate([held, np.zeros((missing, held.shape[1]), dtype=held.dtype)])
                for held in (self.what, self.value, self.length)
            )
        matched = np.zeros(len(self.starts), dtype=bool)
        scan(
            self.text, words_of(self.joined), rows, self.starts, self.ends, *template.arrays,
            matched, self.what, self.value, self.length, self.marks,
        )  # fmt: skip
        self.template[matched] = len(self.templates)
        self.templates.append(template)
        return rows[~matched[rows]]

    @property
    def known(self) -> Bools:
        """Which messages a template reads."""
        return np.asarray(self.template != NO_TEMPLATE)

    def cells(self) -> TemplateCells:
        """The values of the columns."""
        columns = [template.columns for template in self.templates]
        passed = [template.layout.passed(template.document) for template in self.templates]
        return TemplateCells(self.text, self.what, self.value, self.length, self.slots, columns, self.template, passed)

    def by_template(self, fact: Callable[[Template], object], rows: _I64) -> list[object]:
        """What the template of each row says."""
        said = [fact(template) for template in self.templates]
        if all(one is said[0] or one == said[0] for one in said):
            return [said[0]] * len(rows)
        objects = np.empty(len(said), dtype=object)
        objects[:] = said
        listed: list[object] = objects[self.template[rows]].tolist()
        return listed

    def texts(self, slot: int, rows: _I64) -> list[str | None]:
        """Texts of the head, None where there is none. Many are equal: equal ones share one object."""
        coded = self.cells().texts(rows, {slot: (TEXT,)})[slot].dictionary_encode()
        names = np.array([*coded.dictionary.to_pylist(), None], dtype=object)
        listed: list[str | None] = names[coded.indices.fill_null(NO_TEMPLATE).to_numpy()].tolist()
        return listed

    def numbers(self, slot: int, rows: _I64) -> list[int | None]:
        """Numbers of the head, None where there is none."""
        there = (self.what[slot, rows] == INT).tolist()
        return [n if has else None for n, has in zip(self.value[slot, rows].tolist(), there, strict=True)]

    def is_one_of(self, slot: int, *kinds: int) -> Bools:
        """Whether a slot has one of these kinds of values, or none."""
        what = self.what[slot]
        one_of = what == ABSENT
        for kind in kinds:
            one_of |= what == kind
        return np.asarray(one_of)
