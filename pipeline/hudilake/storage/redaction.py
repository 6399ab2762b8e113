"""Keeps secrets out of messages.

It stands alone: storages, the source and the stream all keep their messages clean by it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from urllib.parse import quote, quote_plus

_MAX_CHARACTERS = 400
_HARMLESS = frozenset({"true", "false", "yes", "no", "etag"})
_MIN_CHARACTERS = 4
#: Within a URL, and in a text that is an address without a scheme.
_PASSWORD = re.compile(r"(//[^/@\s:]*:)[^/@\s]*@|^([^/@\s:]*:)(?!//)\S*@")


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


def without_passwords(text: str) -> str:
    """The text with ``***`` for the passwords of its addresses, ``//user:password@host`` or ``user:password@host``."""
    return _PASSWORD.sub(lambda found: f"{found[1] or found[2]}***@", text)
