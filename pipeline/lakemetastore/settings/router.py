"""The router's settings: several metastores behind one address."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from hudilake.validation import Section, Text, mistake

BackendName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]+$")]


def _addresses(text: str) -> str:
    parts = [part.strip() for part in text.split(",")]
    for part in parts:
        host, _, port = part.removeprefix("thrift://").rpartition(":")
        if not (part.startswith("thrift://") and host and port.isdecimal() and 0 < int(port) < 65536):
            raise mistake("must be addresses like thrift://host:9083, with commas between them")
    return ",".join(parts)


def _glob(text: str) -> str:
    if text != text.lower() or text.count("*") > 1 or not text.strip() or "." in text:
        raise mistake("must be the name of a database in lower case, in which one * may stand for any characters")
    return text


Glob = Annotated[str, AfterValidator(_glob)]


class BackendSettings(Section):
    """A metastore behind the router."""

    uri: Annotated[Text, AfterValidator(_addresses)] | None = None
    """Addresses of a Hive Metastore, such as ``thrift://host-a:9083,thrift://host-b:9083``: the next one is taken when
    one does not answer. null is the metastore of this service itself; one backend may be it."""
    read_only: bool = False
    """Refuse every call that would change it."""
    on_down: Literal["hide", "fail"] = "fail"
    """While it is down, listings of all databases leave its databases out (``hide``), or fail. Calls that name one of
    its databases fail in both cases: no table is said to be missing that is only out of reach."""
    connect_seconds: float = Field(default=5.0, gt=0)
    """How long a connection may take."""
    answer_seconds: float = Field(default=600.0, gt=0)
    """How long it may say nothing while it answers."""
    retry_seconds: float = Field(default=2.0, ge=0)
    """After all of its addresses failed, calls fail at once for so long before it is tried again."""

    @property
    def addresses(self) -> tuple[tuple[str, int], ...]:
        """Host and port of each address; empty for the service's own metastore."""
        parts = [part.removeprefix("thrift://").rpartition(":") for part in self.uri.split(",")] if self.uri else []
        return tuple((host.strip("[]"), int(port)) for host, _, port in parts)


class RuleSettings(Section):
    """Which backend databases are in. The first rule that matches counts."""

    match: Glob
    """The database's name in the backend, in lower case; one ``*`` stands for any characters."""
    to: BackendName
    """The backend."""
    as_: Glob | None = Field(default=None, alias="as")
    """The name that clients see; ``*`` in it is what ``*`` in ``match`` stood for. By default the name itself."""
    read_only: bool = False
    """Refuse every call that would change these databases."""

    @model_validator(mode="after")
    def _can_be_turned_round(self) -> Self:
        if self.as_ is not None and ("*" in self.as_) != ("*" in self.match):
            raise mistake("match and as must both have a *, or both have none")
        return self


class RouterSettings(Section):
    """Several metastores that clients see as one catalog."""

    backends: dict[BackendName, BackendSettings] = Field(min_length=1)
    """The metastores, by names of their own."""
    primary: BackendName
    """The backend for calls that name no database: configuration, roles, locks, transactions, notifications."""
    rules: tuple[RuleSettings, ...] = Field(min_length=1)
    """Which database is in which backend. A database that no rule matches is not seen."""

    @model_validator(mode="after")
    def _names_are_known(self) -> Self:
        for name in unknown((self.primary, *(rule.to for rule in self.rules)), self.backends):
            raise mistake(f"there is no backend {name}; backends are {', '.join(self.backends)}")
        if sum(backend.uri is None for backend in self.backends.values()) > 1:
            raise mistake("only one backend may be the service's own metastore (one without uri)")
        return self


def unknown(names: Iterable[str], known: Mapping[str, object]) -> list[str]:
    """The names that are not known."""
    return [name for name in names if name not in known]
