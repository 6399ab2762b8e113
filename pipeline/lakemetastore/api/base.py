"""The base of all messages: immutable, and strict about what clients send.

It stands alone: all messages, the HTTP service and the client use it.
"""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class ApiMessage(BaseModel):
    """A request or an answer. Unknown fields are ignored, so that an older side understands a newer one."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class Problem(ApiMessage):
    """Why a request failed, in the words of the error: what happened, where, and what to do next."""

    error: str
    what: str
    where: dict[str, str] = {}
    do_next: str = ""
