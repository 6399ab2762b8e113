"""What goes wrong between the router and its backends.

It stands alone: most modules of the router raise or catch these errors, and it imports none of them.
"""

from __future__ import annotations

from hudilake.errors import LakeError, TransientError


class BackendDownError(TransientError):
    """A backend did not answer, and nothing of the call was carried out, or it may be sent again."""


class OutcomeUnknownError(TransientError):
    """A backend got a call that changes something and was lost before it answered."""


class RefusedCallError(LakeError):
    """The router answers a call itself, with an exception. ``kinds``: names of exceptions of the Hive Metastore, of
    which the first that the method declares is sent."""

    def __init__(self, what: str, kinds: tuple[str, ...], *, do_next: str = "") -> None:
        super().__init__(what, do_next=do_next)
        self.kinds = kinds
