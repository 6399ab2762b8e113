"""A request of the Hive Metastore's protocol to its answer."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator

from hudilake.clock import monotonic_s
from hudilake.errors import LakeError
from lakemetastore.errors import CatalogError
from lakemetastore.hive import message
from lakemetastore.hive.context import Context, Services
from lakemetastore.hive.encoded import EncodedResult
from lakemetastore.hive.failures import exception
from lakemetastore.hive.handlers.table import METHODS
from lakemetastore.hive.methods import HiveMethod
from lakemetastore.hive.session import Session
from lakemetastore.hive.wire import ONEWAY, ThriftMessage

log = logging.getLogger(__name__)

Reply = bytes | Iterator[bytes]
"""A whole reply, or its pieces."""


class HiveCalls:
    """Answers whole requests with whole replies. It can be used without a socket.

    Args:
        services: what handlers work on.
        on_call: is passed each call: method, seconds, outcome (``ok``, ``refused``, ``unsupported``, ``failed``,
            ``malformed``).
    """

    def __init__(self, services: Services, on_call: Callable[[str, float, str], None] | None = None) -> None:
        self._services = services
        self._on_call = on_call

    def __call__(self, session: Session, request: ThriftMessage) -> Reply | None:
        """The reply to a request; None if it wants none."""
        begin = monotonic_s()
        method = METHODS.get(request.name)
        if method is None:
            answered: Reply = message.unknown_method(request.name, request.sequence)
            outcome = "unsupported"
        else:
            answered, outcome = self._answer(method, session, request)
        if self._on_call:
            self._on_call(request.name if method else "-", monotonic_s() - begin, outcome)
        return None if request.kind == ONEWAY or (method and method.result is None) else answered

    def _answer(self, method: HiveMethod, session: Session, request: ThriftMessage) -> tuple[Reply, str]:
        try:
            arguments = message.decode(request.body, method.arguments)
        except (TypeError, ValueError, EOFError) as error:
            text = f"The arguments of {method.name} cannot be read: {error}"
            return message.protocol_error(method.name, request.sequence, text), "malformed"
        try:
            value = method.handler(Context(self._services, session), arguments)
            return _reply(method, request.sequence, value), "ok"
        except LakeError as error:
            return _failed(method, request.sequence, error)
        except Exception:
            log.exception("%s failed", method.name)
            return message.internal_error(method.name, request.sequence), "failed"


def _reply(method: HiveMethod, sequence: int, value: object) -> Reply:
    if isinstance(value, EncodedResult):
        return value.reply(message.reply_head(method.name, sequence))
    if method.result is None:
        return b""
    result = method.result() if value is None else method.result(success=value)
    return message.reply(method.name, sequence, message.encode(result))


def _failed(method: HiveMethod, sequence: int, error: LakeError) -> tuple[bytes, str]:
    refused = isinstance(error, CatalogError)
    log.log(logging.DEBUG if refused else logging.ERROR, "%s: %s", method.name, error)
    outcome = "refused" if refused else "failed"
    declared_exception = exception(error, method.declared)
    if declared_exception is None:
        return message.internal_error(method.name, sequence), outcome
    field, value = declared_exception
    return message.reply(method.name, sequence, message.encode(method.result(**{field: value}))), outcome
