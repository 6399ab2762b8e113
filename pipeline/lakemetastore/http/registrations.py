"""Instants that writers register: looked up in the timeline, then passed to the metastore."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from prometheus_client import Counter

from hudilake.errors import LakeError
from lakemetastore.api.tables import RegistrationReply, RegistrationRequest
from lakemetastore.http.open_tables import NotSeenError, OpenTable
from lakemetastore.http.options import Register

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Registrations:
    """Takes registrations in.

    Args:
        register: tells the metastore; None if there is none.
        failed: counts those that it did not take in.
    """

    register: Register | None
    failed: Counter

    def take(self, table: OpenTable, request: RegistrationRequest) -> RegistrationReply:
        """The table's state with the instant. An instant that the timeline does not show is passed to nobody: the
        timeline is the truth.

        A metastore that fails is no failure of the request: its reconciler takes the instant in later. Raises
        NoSuchObjectError, CorruptDataError, StorageError.
        """
        try:
            with table.hold(at_least=request.instant) as view:
                state = view.known.state
        except NotSeenError:
            with table.hold(max_age_ms=1000) as view:
                return RegistrationReply(state=view.known.state, seen=False)
        if self.register is not None:
            try:
                self.register(table.storage.uri, request.instant)
            except LakeError as error:
                self.failed.inc()
                _log.warning(
                    "instant %s is not registered: %s", request.instant, error, extra={"event": "registration_failed"}
                )
        return RegistrationReply(state=state, seen=True)
