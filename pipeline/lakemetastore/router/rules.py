"""Which database is in which backend and by which name, in both directions. The first rule that matches counts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from lakemetastore.settings.router import RouterSettings, RuleSettings


@dataclass(frozen=True, slots=True)
class Place:
    """A database of a backend: its name there, and the name that clients see."""

    backend: str
    name: str
    seen: str
    read_only: bool


@dataclass(frozen=True, slots=True)
class Clash:
    """A name that databases of several places would have. ``wins`` is seen, ``hidden`` are not."""

    seen: str
    wins: Place
    hidden: tuple[Place, ...]

    def __str__(self) -> str:
        others = ", ".join(f"{place.name} of {place.backend}" for place in self.hidden)
        return f"Database {self.seen} leads to {self.wins.name} of {self.wins.backend}, which hides {others}"


class Rules:
    """The rules of a router. Names are compared in lower case. Safe for threads."""

    def __init__(self, settings: RouterSettings) -> None:
        self._rules: Sequence[RuleSettings] = settings.rules
        self._read_only = {name for name, backend in settings.backends.items() if backend.read_only}
        self.renaming = {rule.to for rule in settings.rules if rule.as_ is not None and rule.as_ != rule.match}
        """Backends some of whose databases have another name for clients."""
        self.place = lru_cache(10_000)(self._place)
        self.seen_as = lru_cache(10_000)(self._seen_as)

    def _place(self, seen: str) -> Place | None:
        """Where a database is, by the name that a client gives; None if no rule leads to one."""
        for rule in self._rules:
            star = _star(rule.as_ or rule.match, seen)
            if star is not None:
                name = rule.match.replace("*", star)
                if self._rule_of(rule.to, name) is rule:
                    return self._of(rule, name, seen)
        return None

    def _seen_as(self, backend: str, name: str) -> Place | None:
        """A backend's database as clients see it; None if they do not."""
        place = self.would_be(backend, name)
        return place if place is not None and self.place(place.seen) == place else None

    def would_be(self, backend: str, name: str) -> Place | None:
        """A backend's database as clients would see it if no other had its name; None if no rule matches it."""
        rule = self._rule_of(backend, name.lower())
        if rule is None:
            return None
        star = _star(rule.match, name.lower()) or ""
        return self._of(rule, name.lower(), (rule.as_ or rule.match).replace("*", star))

    def clashes(self, databases: Mapping[str, Sequence[str]]) -> list[Clash]:
        """Names that databases of several backends would have, by the databases of each backend."""
        places: dict[str, list[Place]] = {}
        for backend, names in databases.items():
            for name in names:
                if place := self.would_be(backend, name):
                    places.setdefault(place.seen, []).append(place)
        clashes = []
        for seen, rivals in sorted(places.items()):
            wins = self.place(seen)
            hidden = tuple(place for place in rivals if place != wins)
            if wins is not None and hidden:
                clashes.append(Clash(seen, wins, hidden))
        return clashes

    def _rule_of(self, backend: str, name: str) -> RuleSettings | None:
        return next((r for r in self._rules if r.to == backend and _star(r.match, name) is not None), None)

    def _of(self, rule: RuleSettings, name: str, seen: str) -> Place:
        return Place(rule.to, name, seen, rule.read_only or rule.to in self._read_only)


def _star(glob: str, name: str) -> str | None:
    """What the ``*`` of a glob stands for in a name, empty for a glob without one; None if the glob does not match."""
    head, star, tail = glob.partition("*")
    if not star:
        return "" if name == glob else None
    fits = len(name) >= len(head) + len(tail) and name.startswith(head) and name.endswith(tail)
    return name[len(head) : len(name) - len(tail)] if fits else None
