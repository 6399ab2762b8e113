"""Keeps secrets out of messages.

It stands alone: storages, the source and the stream all keep their messages clean by it.
"""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import quote, quote_plus

_MAX_CHARACTERS = 400
_HARMLESS = frozenset({"true", "false", "yes", "no", "etag"})
_MIN_CHARACTERS = 4


def redact(text: str, secrets: Iterable[str]) -> str:
    """The text on one line, cut to a readable length, with every secret in it replaced by ``***``.

    A secret is found as it is and as a URL would carry it. Words of fewer than four characters are left alone.
    """
    text = " ".join(text.split())
    for secret in sorted(set(secrets), key=len, reverse=True):
        if len(secret) >= _MIN_CHARACTERS and secret.lower() not in _HARMLESS:
            for form in (secret, quote(secret, safe=""), quote_plus(secret)):
                text = text.replace(form, "***")
    return text if len(text) <= _MAX_CHARACTERS else f"{text[:_MAX_CHARACTERS]}..."
