"""The schema registry over HTTP (Confluent's REST interface): the Avro schema of an id, requested once per process.

``confluent_kafka.schema_registry`` is not used: its extra adds a second HTTP stack of eight packages for one GET
request, and limits the version of confluent-kafka.
"""

from __future__ import annotations

import base64
import json
import logging
import ssl
import time
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from http.client import HTTPException
from typing import Any

from binlake.settings import Settings
from hudilake.clock import monotonic_s
from hudilake.errors import ConfigError, TransientError

_log = logging.getLogger(__name__)

_ACCEPT = "application/vnd.schemaregistry.v1+json, application/json"
_NO_SCHEMA = 40403
_PASSING = frozenset({408, 425, 429, 500, 502, 503, 504})
_REFUSED = frozenset({401, 403, 407})
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.2, 5.0
_MOST_KEPT = 5_000
#: Far more than a schema has; a table of 4,096 columns gives about 1 MB.
_MOST_BYTES = 32 << 20
_kept: dict[tuple[str, int], str] = {}


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """Refuses redirects: credentials are for the registry alone."""

    def redirect_request(self, *args: Any, **kwargs: Any) -> None:  # noqa: ANN401 - urllib's
        """Follow no redirect: it becomes an error."""


@dataclass(frozen=True, slots=True)
class SchemaRegistryClient:
    """A client of one registry. Picklable; never prints its credentials.

    Args:
        url: the registry's URL, without a slash at the end.
        authorization: the value of the header; None for none.
        ca_file: PEM certificates to trust; None for the system's.
        timeout_s: of one request, in seconds.
        retry_s: how long a failing request is repeated, in seconds.
    """

    url: str
    authorization: str | None = field(default=None, repr=False)
    ca_file: str | None = None
    timeout_s: float = 10.0
    retry_s: float = 30.0

    def describe(self) -> str:
        """The registry's address."""
        return self.url

    def schema(self, schema_id: int, subject: str) -> str | None:
        """The schema's text; None if the registry does not know the id.

        Raises TransientError if there is no answer in time, ConfigError if access is refused or it is not a registry.
        """
        kept = _kept.get((self.url, schema_id))
        if kept is not None:
            return kept
        body = self._ask(schema_id, subject)
        if body is None:
            return None
        kind = body.get("schemaType", "AVRO")
        text = body.get("schema")
        if kind != "AVRO" or not isinstance(text, str):
            raise ConfigError(
                f"schema {schema_id} is of type {kind}, not Avro",
                do_next="let the connector use AvroConverter, or leave its topic out",
                **self._where(schema_id, subject),
            )
        if len(_kept) >= _MOST_KEPT:
            _kept.clear()
        _kept[self.url, schema_id] = text
        return text

    def probe(self) -> None:
        """Request a schema that no registry has, to check that it answers. Raises as ``schema``."""
        self._ask(0, "none")

    def _ask(self, schema_id: int, subject: str) -> dict[str, Any] | None:
        deadline, pause = monotonic_s() + self.retry_s, _FIRST_PAUSE_S
        while True:
            try:
                return self._once(schema_id, subject)
            except TransientError as error:
                if monotonic_s() + pause > deadline:
                    raise
                fields = {"event": "registry_asked_again", "error": error.what, **self._where(schema_id, subject)}
                _log.info("%s; it is asked again in %.1f s", error.what, pause, extra=fields)
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE_S)

    def _once(self, schema_id: int, subject: str) -> dict[str, Any] | None:
        where = self._where(schema_id, subject)
        try:
            with self._opener().open(self._request(schema_id), timeout=self.timeout_s) as answer:
                text = answer.read(_MOST_BYTES + 1)
                if len(text) > _MOST_BYTES:
                    raise _no_registry(f"its answer has more than {_MOST_BYTES} bytes", where)
                body = json.loads(text)
        except urllib.error.HTTPError as error:
            with error:
                _unless_unknown(error, where)
                return None
        except (urllib.error.URLError, HTTPException, OSError) as error:
            raise TransientError(
                f"the schema registry does not answer: {getattr(error, 'reason', error)}",
                do_next="check the registry, or correct source.registry.url",
                **where,
            ) from None
        except (ValueError, RecursionError):
            raise _no_registry("what it answers is not JSON", where) from None
        return body if isinstance(body, dict) else {}

    def _request(self, schema_id: int) -> urllib.request.Request:
        headers = {"Accept": _ACCEPT}
        if self.authorization is not None:
            headers["Authorization"] = self.authorization
        return urllib.request.Request(f"{self.url}/schemas/ids/{schema_id}", headers=headers)  # noqa: S310 - http(s) by the settings

    def _opener(self) -> urllib.request.OpenerDirector:
        handlers: list[urllib.request.BaseHandler] = [_NoRedirects()]
        if self.url.startswith("https:"):
            try:
                context = ssl.create_default_context(cafile=self.ca_file)
            except (OSError, ssl.SSLError) as error:
                raise ConfigError(
                    f"the certificates cannot be read: {error}",
                    do_next="correct source.registry.ca_file",
                    path=self.ca_file,
                ) from error
            handlers.append(urllib.request.HTTPSHandler(context=context))
        return urllib.request.build_opener(*handlers)

    def _where(self, schema_id: int, subject: str) -> dict[str, Any]:
        return {"url": self.url, "schema_id": schema_id, "subject": subject}


def _unless_unknown(error: urllib.error.HTTPError, where: dict[str, Any]) -> None:
    """Raise for every error except that the id is unknown."""
    if error.code in _PASSING:
        raise TransientError(
            f"the schema registry answers {error.code} {error.reason}", do_next="look at the registry", **where
        )
    if error.code in _REFUSED:
        raise ConfigError(
            f"the schema registry refuses the request: {error.code} {error.reason}",
            do_next="correct source.registry.username and password, or token",
            **where,
        )
    try:
        known = json.loads(error.read(_MOST_BYTES)).get("error_code") == _NO_SCHEMA
    except (ValueError, AttributeError, OSError):
        known = False
    if error.code != 404 or not known:
        raise _no_registry(f"it answers {error.code} {error.reason}", where)


def _no_registry(what: str, where: dict[str, Any]) -> ConfigError:
    return ConfigError(f"this server is not a schema registry: {what}", do_next="correct source.registry.url", **where)


def schema_registry(settings: Settings) -> SchemaRegistryClient | None:
    """The client of the settings' registry; None if the settings have none."""
    rules = settings.source.registry
    if rules.url is None:
        return None
    authorization = None
    if rules.token is not None:
        authorization = f"Bearer {rules.token.get_secret_value()}"
    elif rules.username is not None:
        password = rules.password.get_secret_value() if rules.password is not None else ""
        authorization = "Basic " + base64.b64encode(f"{rules.username}:{password}".encode()).decode()
    return SchemaRegistryClient(rules.url, authorization, rules.ca_file, rules.timeout_seconds, rules.retry_seconds)
