"""Databases: made, changed, listed by patterns, dropped; names that are right and wrong."""

from __future__ import annotations

import random
from collections.abc import Iterator

from tests.lakemetastore.judged.calls import Call, call
from tests.lakemetastore.judged.objects import database, table

_NAMES = ("{p}_a", "{p}_AB", "{p}_abc", "{p}_1", "{p}_ünï", "{p}-dash", "{p}.dot", "{p} blank", "", "9{p}")


def script(prefix: str, rng: random.Random) -> Iterator[Call]:
    """The calls of a seed; names begin with ``prefix``."""
    names = [name.format(p=prefix) for name in _NAMES]
    for name in names:
        yield call("create_database", database(name, description=rng.choice((None, "", "words ü"))))
        yield call("get_database", name)
    yield call("create_database", database(names[0]))
    yield call("create_database", database(names[0].upper()))
    yield call("get_database", names[1].upper())
    yield call("get_database", f"{prefix}_absent")
    yield from _listed(prefix)
    yield from _changed(names[0], prefix)
    yield from _dropped(names, rng)


def _listed(prefix: str) -> Iterator[Call]:
    patterns = ("*", "a*", "*a*", "AB", "*|absent", "abc|1", "a|ab", "*b*|a", "a.*", "", "?", "absent", "a%", "_a")
    for pattern in patterns:
        yield call("get_databases", "|".join(f"{prefix}_{one}" for one in pattern.split("|")))
    for pattern in (f"{prefix}*", f"{prefix.upper()}*", f"{prefix}.a", f" {prefix}_a "):
        yield call("get_databases", pattern)


def _changed(name: str, prefix: str) -> Iterator[Call]:
    new = database(name, description="other", parameters={"k": "v", "ü": "é"}, ownerName="bob", ownerType=2)
    yield call("alter_database", name, new)
    yield call("get_database", name)
    yield call("alter_database", name, database(f"{prefix}_renamed"))
    yield call("alter_database", f"{prefix}_absent", database(f"{prefix}_absent"))
    yield call("alter_database", name.upper(), database(name, parameters={}))
    yield call("get_database", name)


def _dropped(names: list[str], rng: random.Random) -> Iterator[Call]:
    yield call("create_table", table(names[0], "t"))
    yield call("create_table", table(names[0], "u"))
    yield call("drop_database", names[0], False, False)
    yield call("get_all_tables", names[0])
    yield call("drop_database", names[0].upper(), False, True)
    yield call("get_all_tables", names[0])
    yield call("get_table", names[0], "t")
    for name in rng.sample(names, len(names)):
        yield call("drop_database", name, False, True)
    yield call("drop_database", "default", False, False)
    yield call("get_database", "default")
