"""Random statements whose locations clash: with a lake, with links, with each other. Judged by a plain rule: a file
goes only if all that had it were managed and went with it, and only a table's own files move with it."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass
from pathlib import Path

import pytest
from thrift.Thrift import TException

from lakemetastore.catalog.claims import Claims
from tests.hypothesis_profile import scaled
from tests.lakemetastore.files.beside import our_side
from tests.lakemetastore.files.statements import Side, Statements

MARK = "hx"
COUNT = 60
PLACES = (
    "warehouse/own/1",
    "warehouse/own/1/in",
    "warehouse/own/./x/../1",
    "warehouse/own//2/",
    "warehouse/lake",
    "warehouse/lake/day=1",
    "warehouse",
    "warehouse/own",
    f"warehouse/{MARK}a.db",
    f"warehouse/{MARK}a.db/t",
    f"warehouse/{MARK}b.db/u/p=1",
    "warehouse/link",
    "warehouse/link/there",
    "warehouse/here/3",
    "warehouse/../out/4",
    "out/4",
)


class ClashingStatements(Statements):
    """Locations are a few that touch each other."""

    def _new_place(self, root: str) -> str:
        return self._random.choice(PLACES)


@dataclass(frozen=True)
class Known:
    """What the catalog has: places of tables and partitions, links followed, and which tables are external."""

    places: dict[tuple[str, ...], str]
    external: set[str]

    @classmethod
    def of(cls, side: Side) -> Known:
        places: dict[tuple[str, ...], str] = {}
        external = set()
        for database in side.client.get_databases(f"{side.mark}*"):
            for name in side.client.get_all_tables(database):
                table, full = side.client.get_table(database, name), f"{database}.{name}"
                places[(full,)] = _real(table.sd.location)
                if table.tableType == "EXTERNAL_TABLE":
                    external.add(full)
                for part in side.client.get_partitions(database, name, -1) if table.partitionKeys else ():
                    places[(full, *part.values)] = _real(part.sd.location)
        return cls(places, external)

    def owners(self, path: str) -> set[tuple[str, ...]]:
        return {owner for owner, place in self.places.items() if path.startswith(f"{place}/")}


def _real(location: str) -> str:
    return os.path.realpath(location.removeprefix("file:"))


def _files(place: Path) -> dict[str, str]:
    """Paths by contents; each file has its own."""
    return {path.read_text(): str(path) for path in place.rglob("*") if path.is_file()}


def _filled(place: Path) -> None:
    texts = ("warehouse/lake/.hoodie/hoodie.properties", "warehouse/lake/day=1/rows", "out/there/rows", "out/4/rows")
    for text in texts:
        file = place / text
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"kept {text}")
    (place / "warehouse" / "link").symlink_to(place / "out")
    (place / "warehouse" / "here").symlink_to(place / "warehouse" / "own")


def _harm(place: Path, files: dict[str, str], before: Known, after: Known, truncated: bool) -> str | None:
    """What a statement did to files that it should not have."""
    now = _files(place)
    for text, path in files.items():
        if now.get(text) == path:
            continue
        owners = before.owners(path)
        if "/lake/" in path or not path.startswith(f"{place}/warehouse/"):
            return f"{path} is out of bounds"
        if any(owner[0] in before.external for owner in owners):
            return f"{path} is of an external table"
        if text in now:
            if len({owner[0] for owner in owners}) > 1:
                return f"{path} is of several tables, and moved"
            if not after.owners(now[text]):
                return f"{path} moved to {now[text]}, which is nobody's"
            continue
        gone = {owner for owner in owners if after.places.get(owner) != before.places[owner]}
        tables_of_gone = {owner[0] for owner in gone}
        staying = {owner for owner in owners - gone if len(owner) > 1 or owner[0] not in tables_of_gone}
        if staying and not truncated:
            return f"{path} is gone, and {staying} had it, too"
        if truncated and len({owner[0] for owner in owners}) > 1:
            return f"{path} is gone by TRUNCATE, and several tables had it: {owners}"
    return None


def _first_harm(seed: int, place: Path) -> str | None:
    """The first harm that a sequence does."""
    _filled(place)
    with our_side(place, MARK) as side:
        known = Known.of(side)
        for statement in ClashingStatements(seed, MARK).make(COUNT):
            files = _files(place)
            with contextlib.suppress(TException, OSError):  # OSError: a file stands where INSERT makes a directory
                statement.run(side)
            after = Known.of(side)
            if harm := _harm(place, files, known, after, statement.words.startswith("TRUNCATE")):
                return f"{statement}: {harm}"
            known = after
    return None


@pytest.mark.first(1)
@pytest.mark.parametrize("seed", range(scaled(200, divisor=20)))
def test_no_statement_takes_files_that_somebody_else_has(seed: int, tmp_path: Path) -> None:
    assert _first_harm(seed, tmp_path) is None


@pytest.mark.full
def test_the_search_finds_harm_where_nobody_asks_who_else_has_a_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control."""
    monkeypatch.setattr(Claims, "on", lambda claims, location: None)
    found = (_first_harm(seed, tmp_path / str(seed)) for seed in range(10))
    assert next(filter(None, found), None) is not None
