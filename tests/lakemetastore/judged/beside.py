"""Two outcomes of a call beside each other: what differs, and what may."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import msgspec

from tests.lakemetastore.judged.allowed import ALLOWED, Allowed
from tests.lakemetastore.judged.calls import Call, Outcome
from tests.lakemetastore.judged.plain import Plain

#: So many places are shown of one difference.
_SHOWN = 4


@dataclass(frozen=True, slots=True)
class Difference:
    """A call whose outcomes differ; ``allowed``: the rule that allows it."""

    made: Call
    wanted: Outcome
    found: Outcome
    allowed: Allowed | None

    def __str__(self) -> str:
        places = places_of(msgspec.to_builtins(self.wanted), msgspec.to_builtins(self.found))
        shown = [f"  {where}: HMS {_short(one)}, ours {_short(other)}" for where, one, other in places]
        return "\n".join([str(self.made), *itertools.islice(shown, _SHOWN)])


def difference(made: Call, wanted: Outcome, found: Outcome) -> Difference | None:
    """What differs between the outcome of a real metastore and ours; None if nothing does."""
    if wanted == found:
        return None
    allowed = next((rule for rule in ALLOWED if rule.allows(made, wanted, found)), None)
    return Difference(made, wanted, found, allowed)


def places_of(wanted: Plain, found: Plain, where: str = "") -> Iterator[tuple[str, Plain, Plain]]:
    """The innermost places at which two values differ, with both values there."""
    if isinstance(wanted, dict) and isinstance(found, dict):
        for key in sorted({*wanted, *found}):
            yield from places_of(wanted.get(key), found.get(key), f"{where}.{key}")
    elif isinstance(wanted, list) and isinstance(found, list) and len(wanted) == len(found):
        for place, (one, other) in enumerate(zip(wanted, found, strict=True)):
            yield from places_of(one, other, f"{where}[{place}]")
    elif wanted != found:
        yield where, wanted, found


def _short(value: Plain) -> str:
    text = msgspec.json.encode(value).decode()
    return text if len(text) < 300 else f"{text[:300]}..."
