"""Random file groups and keys: every index finds what a dict finds."""

from __future__ import annotations

import tempfile
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hudilake.index.open import open_index
from hudilake.metadata.config import MetadataConfig
from hudilake.policies import ExternalStorePolicy, IndexType, LookupPolicy
from tests.hudilake.index.looked_up import LookedUpTable, Place
from tests.hypothesis_profile import scaled

INDEXES: tuple[IndexType, ...] = ("simple", "global_simple", "bloom", "global_bloom", "in_memory", "external")
#: Keys of unlike lengths, with characters whose order by UTF-16 units differs from that by code points.
TEXTS = st.sampled_from(["a", "b", "", "k-1", "k-10", "k-2", "z" * 40, "é", "\uf000", "\U0001f600", "~"])
NUMBERS = st.integers(0, 60).map(lambda number: f"id{number:04d}")
KEYS = st.one_of(TEXTS, NUMBERS)
PLACES = [(f"day={day}", f"{day}-{n}-0") for day in ("1", "2", "3") for n in range(4)]


@st.composite
def histories(draw: st.DrawFn) -> list[tuple[dict[Place, set[str]], dict[Place, set[str]], bool]]:
    """Commits of (base files, deletes in logs, whether the commit dies), such that a key has one living row at most."""
    holds: dict[Place, set[str]] = {}
    dead: dict[Place, set[str]] = {}
    commits = []
    for _ in range(draw(st.integers(1, 5))):
        living = {key for place, keys in holds.items() for key in keys - dead[place]}
        bases: dict[Place, set[str]] = {}
        for place in draw(st.lists(st.sampled_from(PLACES), min_size=1, max_size=4, unique=True)):
            mine = holds.get(place, set()) - dead.get(place, set())
            kept = {key for key in mine if draw(st.booleans())}
            new = draw(st.sets(KEYS, max_size=12)) - living
            living |= new
            bases[place] = kept | new
        deletes = {
            place: gone
            for place, keys in holds.items()
            if place not in bases and (gone := {key for key in keys - dead[place] if draw(st.integers(0, 3)) == 0})
        }
        dies = draw(st.integers(0, 4)) == 0
        commits.append((bases, deletes, dies))
        if not dies:
            holds |= bases
            dead |= {place: set() for place in bases}
            for place, gone in deletes.items():
                dead[place] = dead[place] | gone
    return commits


@pytest.mark.first(1)
@pytest.mark.parametrize("index", INDEXES)
@settings(max_examples=scaled(60))
@given(
    commits=histories(),
    asked=st.sets(KEYS, min_size=1),
    random=st.randoms(use_true_random=False),
    listed=st.booleans(),
)
def test_every_index_finds_what_a_dict_finds(
    index: IndexType,
    commits: list[tuple[dict[Place, set[str]], dict[Place, set[str]], bool]],
    asked: set[str],
    random: Random,
    listed: bool,
) -> None:
    with tempfile.TemporaryDirectory() as root:
        lake = LookedUpTable.make(Path(root) / "t", index, MetadataConfig() if listed else None)
        is_global = not lake.table.config.kind.scope.by_partition
        policy = LookupPolicy(external=ExternalStorePolicy(store="lmdb", path=str(Path(root) / "lmdb")))
        opened = [open_index(lake.table, policy)]
        keys = sorted(asked)
        days = [random.choice(["day=1", "day=2", "day=3", "day=4"]) for _ in keys]
        for bases, deletes, dies in commits:
            lake.write(bases, deletes, opened, dies=dies)
            opened.append(open_index(lake.table, policy))
            for one in opened[:: len(opened) - 1]:
                lake.check(one, keys, days, is_global=is_global)
