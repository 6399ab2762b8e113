"""All scripts, and the calls of a seed."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

from tests.lakemetastore.judged.calls import Call
from tests.lakemetastore.judged.scripts import databases, filters, others, partitions, requests, tables

Script = Callable[[str, random.Random], Iterator[Call]]

SCRIPTS: dict[str, Script] = {
    "databases": databases.script,
    "tables": tables.script,
    "partitions": partitions.script,
    "filters": filters.script,
    "others": others.script,
    "requests": requests.script,
}
_OF_4 = frozenset({"requests"})


def calls_of(name: str, seed: int) -> list[Call]:
    """The calls of a script. Names are of the seed, so that scripts of several seeds can run on one server."""
    return list(SCRIPTS[name](f"j{seed}", random.Random(f"{name} {seed}")))


def scripts_of(release: str) -> tuple[str, ...]:
    """The scripts of a release: all but the later release's own requests for 3.1.3, these alone for 4.0.1."""
    return tuple(name for name in SCRIPTS if (name in _OF_4) == (release != "3.1.3"))
