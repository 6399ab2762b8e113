"""The part ``statements``: SQL that others test their readers with, through binlake's reader of statements.

An input is a file of statements. It is equal if the reader answers each statement, in any way but an exception.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass

from binlake.decode.ddl.clauses import AddColumn, ModifyColumn, RenameColumn
from binlake.decode.ddl.constants import constant_of
from binlake.decode.ddl.statements import parse_ddl
from hudilake.errors import LakeError
from tests.programs.proofs.checkouts import checkout_of, sql_files
from tests.programs.proofs.part import Outcome, Task, Verdict
from tests.programs.proofs.suite.language import Sql, read


@dataclass(frozen=True)
class StatementsPart:
    """Files of statements of a checkout. ``below``: the beginning of their names there."""

    name: str
    owner: str
    inputs: str
    about: str
    below: str = ""

    def run(self, task: Task) -> Iterator[Verdict]:
        """Judge files. The path of a checkout is an option of the task; without it there are no inputs."""
        checkout = checkout_of(task.options)
        if checkout is None:
            return
        named = [(name, text) for name, text in sql_files(checkout, self.below) if name not in task.judged]
        for name, text in named[task.start :][: task.limit]:
            yield judged(name, text)


def judged(name: str, text: str) -> Verdict:
    """The verdict of a file. Its detail says how many statements there are, and how many change tables."""
    statements = [step.text for step in read(text, plain=True) if isinstance(step, Sql)]
    effects = 0
    for statement in statements:
        try:
            effects += _effects(statement)
        except Exception as error:
            return Verdict(name, Outcome.WRONG, f"{type(error).__name__} of the reader", f"{error}: {statement[:500]}")
    return Verdict(name, Outcome.EQUAL, "", f"{len(statements)} statements, {effects} effects")


def _effects(statement: str) -> int:
    """How many effects a statement has. Each default of a column is read too; one that is refused says so."""
    effects = parse_ddl(statement, "d")
    for effect in effects:
        for clause in effect.clauses:
            column = clause.column if isinstance(clause, AddColumn | ModifyColumn | RenameColumn) else None
            if column is not None:
                with contextlib.suppress(LakeError):
                    constant_of(column)
    return len(effects)
