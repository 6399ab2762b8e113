"""The kinds of joins, and which side's rows come without a partner.

It stands alone: the columns and the pairs of a join both depend on it, and neither imports the other.
"""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from hudilake.errors import ConfigError

#: As in Spark: ``semi`` gives the left rows with a partner, ``anti`` those without one.
JoinHow: TypeAlias = Literal["inner", "left", "right", "full", "semi", "anti"]
_HOWS: Final[tuple[JoinHow, ...]] = ("inner", "left", "right", "full", "semi", "anti")
#: Kinds whose result has the left columns only.
LEFT_ONLY: Final = frozenset[JoinHow]({"semi", "anti"})
_NEEDS_LEFT: Final = frozenset[JoinHow]({"inner", "left", "semi", "anti"})
_NEEDS_RIGHT: Final = frozenset[JoinHow]({"inner", "right", "semi"})


def check_how(text: str) -> JoinHow:
    """A kind of join by its name. Raises ConfigError for another name."""
    for how in _HOWS:
        if how == text:
            return how
    raise ConfigError(f"{text!r} is no kind of join", do_next=f"choose one of {', '.join(_HOWS)}")


def gives_rows(how: JoinHow, left: bool, right: bool) -> bool:
    """Whether a join gives rows at all where a side may have rows, or has none."""
    return (left or how not in _NEEDS_LEFT) and (right or how not in _NEEDS_RIGHT) and (left or right)
