"""What every page is made with: the site, the query of an address, templates, and the files that pages link.

Every value of a page is escaped: names and values of a source are not trusted. Escaping is on for all templates, and
control characters and those that reorder text become visible escapes, as at a terminal. No template marks a value as
safe; drawings are made of numbers and escaped names.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import TypeAlias
from urllib.parse import urlencode

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from binlake.cli.console.looked import LookedTable, StreamView
from binlake.cli.console.watch import StreamWatch
from binlake.cli.text import duration, moment, number, one_line, size
from binlake.settings import Settings
from hudilake.errors import ConfigError, LakeError

_TYPES = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}


@dataclass(frozen=True, slots=True)
class StaticFile:
    """A file that a page links: its bytes, its media type, and the first characters of its digest."""

    body: bytes
    media_type: str
    digest: str


@cache
def static_files() -> Mapping[str, StaticFile]:
    """The files that pages link, by name. They are read once."""
    read = {}
    for place in files("binlake.cli.console").joinpath("static").iterdir():
        kind = _TYPES.get(place.name.rpartition(".")[2])
        if kind is not None:
            body = place.read_bytes()
            read[place.name] = StaticFile(body, f"{kind}; charset=utf-8", hashlib.sha256(body).hexdigest()[:12])
    return read


def _shown(value: object) -> object:
    """A value as a template prints it."""
    return one_line(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def held(value: object) -> Markup:
    """A value as a form control holds it: what the form sends back is what was given."""
    return escape(str(value))


def address(path: str, **query: object) -> str:
    """The address of a page; values that are None or empty are left out."""
    given = {name: value for name, value in query.items() if value not in (None, "")}
    return f"{path}?{urlencode(given)}" if given else path


def linked(name: str) -> str:
    """The address of a static file; it changes with the file."""
    return f"/static/{name}?{static_files()[name].digest}"


@cache
def templates() -> Environment:
    """The environment of all templates."""
    environment = Environment(
        loader=PackageLoader("binlake.cli.console"),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=_shown,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals.update(address=address, linked=linked)
    environment.filters.update(duration=duration, held=held, moment=moment, number=number, size=size)
    return environment


#: The query of an address: name -> value.
Asked: TypeAlias = Mapping[str, str]


@dataclass(frozen=True)
class Site:
    """What the console is for.

    ``watches``: by the stream's name, in the order of the command line. ``ended``: set when it is no longer served.
    """

    watches: Mapping[str, StreamWatch] = field(default_factory=dict)
    ended: threading.Event = field(default_factory=threading.Event)

    def links(self) -> list[tuple[str, str, str, str]]:
        """The pages of the navigation: name, address, word, and the key that leads there after ``g``."""
        return [
            ("lake", "/", "Lake", "l"),
            ("stream", "/stream", "Streams", "s"),
            ("query", "/query", "Query", "q"),
            ("quarantine", "/quarantine", "Quarantine", "x"),
            ("actions", "/actions", "Actions", "a"),
        ]

    def watch(self, asked: Asked) -> StreamWatch:
        """The watch of the stream that an address names; the first one if it names none. Raises ConfigError."""
        name = asked.get("stream", "") or next(iter(self.watches))
        if name not in self.watches:
            raise ConfigError(
                "the console watches no such stream",
                do_next=f"name one of {', '.join(self.watches)}",
                stream=name,
            )
        return self.watches[name]

    def table(self, asked: Asked) -> tuple[StreamWatch, LookedTable]:
        """The table that an address names. Raises ConfigError."""
        watch = self.watch(asked)
        table = watch.view.table(asked.get("table", ""))
        if table is None:
            raise ConfigError(
                "the stream has no such table, or it was not looked at yet",
                do_next="the lake page lists those there are",
                table=asked.get("table", ""),
            )
        return watch, table

    def settings(self, asked: Asked) -> Settings:
        """The settings of the stream that an address names. Raises ConfigError."""
        return self.watch(asked).settings


#: Set when nobody waits any more for the page that this thread makes.
LEFT: ContextVar[threading.Event | None] = ContextVar("left", default=None)


def has_left() -> bool:
    """Whether who asked for the page that is being made has gone."""
    event = LEFT.get()
    return event is not None and event.is_set()


Page: TypeAlias = Callable[[Site, Asked], str]


def rendered(template: str, site: Site, page: str, **values: object) -> str:
    """A page. ``page``: its name in the navigation."""
    return templates().get_template(template).render(site=site, page=page, **values)


def line_points(values: Sequence[int | None], width: float, height: float) -> list[str]:
    """A line of values over time as the points of SVG polylines, one for each run of known values; the greatest value
    touches the top."""
    top = max((value for value in values if value is not None), default=0) or 1
    step = width / max(1, len(values) - 1)
    lines: list[list[str]] = [[]]
    for place, value in enumerate(values):
        if value is None:
            lines.append([])
        else:
            lines[-1].append(f"{place * step:.1f},{height - 1 - (height - 2) * value / top:.1f}")
    return [" ".join(points) for points in lines if points]


def error_words(error: LakeError) -> str:
    """An error within a page: what, and what next."""
    return f"{error.what}. Next: {error.do_next}" if error.do_next else error.what


def state_words(view: StreamView) -> str:
    """A stream's state for people."""
    return {
        "running": "running",
        "died": "down: its run died",
        "failed": "down: its run failed",
        "stopped": "stopped",
        "unknown": "not known",
    }[view.state]
