"""The author of a seed's script: statement after statement, from what the server says of the tables."""

from __future__ import annotations

import random
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from tests.programs.oracle.catalog import read_tables
from tests.programs.oracle.desk import Desk
from tests.programs.oracle.generate import collations, columns, partitions, rows, tables, tools, undetermined
from tests.programs.oracle.generate.draw import Draw, Kind
from tests.programs.oracle.generate.rows import insert
from tests.programs.oracle.generate.spelling import respelled
from tests.programs.oracle.generate.tables import create
from tests.programs.oracle.script import DATABASE, SECOND, Statement

KINDS: tuple[Kind, ...] = (
    *rows.KINDS,
    *columns.KINDS,
    *tables.KINDS,
    *partitions.KINDS,
    *tools.KINDS,
    *undetermined.KINDS,
    *collations.KINDS,
)
_ROWS = frozenset(kind.name for kind in rows.KINDS)
_SHARE_OF_ROWS = 0.6


@dataclass
class Maker:
    """An Author (see desk). ``kinds``: the kinds of statements that are drawn, None for all."""

    seed: int
    kinds: Collection[str] | None = None
    steps: int = 24
    draw: Draw = field(init=False)

    def __post_init__(self) -> None:
        self.draw = Draw(random.Random(self.seed))

    @property
    def name(self) -> str:
        """The script's name."""
        return f"seed_{self.seed}"

    def before(self, desk: Desk) -> None:
        """One to three tables with rows, and some more statements."""
        for _ in range(self.draw.random.randint(1, 3)):
            desk.run(Statement(create(self.draw, DATABASE, self.draw.fresh("t")), "create table"))
        self._look(desk)
        for table in list(self.draw.tables):
            desk.run(Statement(insert(self.draw, table, self.draw.random.randint(1, 8), "INSERT IGNORE"), "insert"))
        for _ in range(self.draw.of((0, 2, 6))):
            self._step(desk)

    def after(self, desk: Desk) -> None:
        """The rest."""
        for _ in range(self.draw.random.randint(self.steps // 2, self.steps)):
            self._step(desk)

    def _step(self, desk: Desk) -> None:
        kind = self._kind()
        made = kind.make(self.draw)
        texts = [respelled(self.draw.random, text) for text in made or ()]
        accepted = [desk.run(Statement(text, kind.name)) for text in texts]
        if any(accepted) and kind.name not in _ROWS:
            self._look(desk)

    def _kind(self) -> Kind:
        of_rows = self.draw.chance(_SHARE_OF_ROWS)
        fitting = [k for k in KINDS if (k.name in _ROWS) == of_rows and (self.kinds is None or k.name in self.kinds)]
        return _weighted(self.draw, fitting or list(rows.KINDS))

    def _look(self, desk: Desk) -> None:
        self.draw.tables = [
            *read_tables(desk.session, desk.database, DATABASE),
            *read_tables(desk.session, f"{desk.database}_2", SECOND),
        ]


def _weighted(draw: Draw, kinds: Sequence[Kind]) -> Kind:
    return draw.random.choices(kinds, [kind.weight for kind in kinds])[0]
