"""Random conditions on two columns, often of two files of a slice: as a filter, as SQL, and on a row of the model."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hudilake.read import And, Eq, Filter, Ge, IsNotNull, IsNull, Lt, Or

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Condition:
    """One condition in three forms."""

    filter: Filter
    sql: str
    passes: Callable[[Row], bool]


def condition(rows: Sequence[Row], dice: random.Random) -> Condition:
    """A condition on two columns that a row often passes."""
    row = dice.choice(rows)
    one, two = (_of_column(name, row[name], dice) for name in dice.sample(["a", "b", "c", "d", "id"], 2))
    if dice.random() < 0.7:
        both = And((one.filter, two.filter))
        return Condition(both, f"({one.sql}) and ({two.sql})", lambda r: one.passes(r) and two.passes(r))
    either = Or((one.filter, two.filter))
    return Condition(either, f"({one.sql}) or ({two.sql})", lambda r: one.passes(r) or two.passes(r))


def _of_column(name: str, value: Any, dice: random.Random) -> Condition:  # noqa: ANN401 - a cell
    literal = f"'{value}'" if isinstance(value, str) else f"{value}"
    kind = "absent" if value is None else dice.choice(["eq", "ge", "lt", "held"])
    if kind == "absent":
        return Condition(IsNull(name), f"{name} is null", lambda r: r[name] is None)
    if kind == "eq":
        return Condition(Eq(name, value), f"{name} = {literal}", lambda r: r[name] == value)
    if kind == "ge":
        return Condition(Ge(name, value), f"{name} >= {literal}", lambda r: r[name] is not None and r[name] >= value)
    if kind == "lt":
        return Condition(Lt(name, value), f"{name} < {literal}", lambda r: r[name] is not None and r[name] < value)
    return Condition(IsNotNull(name), f"{name} is not null", lambda r: r[name] is not None)
