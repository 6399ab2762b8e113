"""One of two actors dies between two phases: the other goes on, and who comes next clears away and does the rest."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.hudilake.actors.actors import BATCHES, write_batches
from tests.hudilake.actors.orders import Actor, Run
from tests.hudilake.actors.running import MORE, PARTS, SEED, Runs
from tests.hudilake.actors.world import World

#: Who dies, and who lives on.
PAIRS = [
    ("writer", "compactor"),
    ("writer", "cleaner"),
    ("writer", "other"),
    ("writer", "archiver"),
    ("compactor", "writer"),
    ("compactor", "cleaner"),
    ("compactor", "second"),
    ("cleaner", "writer"),
    ("cleaner", "compactor"),
]
ORDERS = 1


def successor(world: World, name: str) -> Actor:
    """The next process of a dead one, under another name: a writer delivers again what was not committed."""
    if name != "writer":
        return PARTS[name](world, f"next {name}", 1)
    left = [batch for batch in BATCHES[name][:1] if batch not in world.told.values()]
    return write_batches(world, f"next {name}", left)


def phases(made: World, directory: Path, name: str) -> int:
    """How many an actor has when it is alone."""
    runs = Runs(made, directory, {name: 1})
    run = runs.new()
    run.finish()
    runs.world.remove()
    return len(run.order)


def die_and_go_on(runs: Runs, dying: str, after: int, chance: random.Random) -> None:
    """One run, and a look at what it left."""
    run = runs.new()
    run.lives[dying] = after
    while dying in run.able() and (able := run.able()):
        run.step(chance.choice(able))
    while run.lives[dying] > 0 and (able := run.able()):  # it waits: who is waited for goes on
        run.step(chance.choice(able))
    runs.world.bury(dying)
    for _ in range(chance.randrange(3)):
        if able := run.able():
            run.step(chance.choice(able))
    following = Run({"next": successor(runs.world, dying)}, {"next": []})
    both = [run, following]
    while able_runs := [each for each in both if each.able()]:
        chosen = chance.choice(able_runs)
        chosen.step(chance.choice(chosen.able()))
    runs.look(f"{run} | {dying} died after {after} | {following}", {**run.failures, **following.failures})


@pytest.mark.first(1)
@pytest.mark.parametrize(("dying", "living"), PAIRS)
def test_a_death_at_every_phase(made: World, tmp_path: Path, dying: str, living: str) -> None:
    (tmp_path / "alone").mkdir()
    runs = Runs(made, tmp_path, {dying: 1, living: 1})
    for after in range(1, phases(made, tmp_path / "alone", dying)):
        for number in range(ORDERS * MORE):
            chance = random.Random(f"{SEED} {dying} {living} {after} {number}")
            die_and_go_on(runs, dying, after, chance)
    assert runs.wrong == []
    assert dying != "writer" or "rollback" in runs.actions
