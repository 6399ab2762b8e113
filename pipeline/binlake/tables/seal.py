"""Encrypts quarantined records of a stream that masks columns.

Values that are masked in the tables must not be readable in the quarantine, and the raw records must not be lost.
"""

from __future__ import annotations

import base64
import hashlib

from cryptography.fernet import Fernet, InvalidToken

from hudilake.errors import ConfigError

_MARK = b"binlake-sealed:1:"


#: What stands for sealed data where it is not opened.
SEALED = b"(sealed)"


class Seal:
    """Seals and opens data with one secret; without a secret data stays as it is. Picklable."""

    def __init__(self, secret: str | None, *, opens: bool = True) -> None:
        self._opens = opens
        digest = hashlib.sha256(b"binlake quarantine\0" + secret.encode()).digest() if secret else None
        self._key = base64.urlsafe_b64encode(digest) if digest is not None else None

    def seal(self, data: bytes | None) -> bytes | None:
        """The sealed form of some bytes; None stays None."""
        if self._key is None or data is None:
            return data
        return _MARK + Fernet(self._key).encrypt(data)

    def open(self, data: bytes | None) -> bytes | None:
        """The reverse of ``seal``; data that was never sealed is returned as it is, sealed data of a seal that does not
        open as ``SEALED``.

        Raises ConfigError if the data was sealed with another secret.
        """
        if data is None or not data.startswith(_MARK):
            return data
        if not self._opens:
            return SEALED
        try:
            return Fernet(self._key or b"").decrypt(data[len(_MARK) :])
        except (InvalidToken, ValueError) as error:
            raise ConfigError(
                "quarantined records were sealed with another secret",
                do_next="set quarantine.seal to the secret that was used when these records were sealed",
            ) from error

    def seal_text(self, text: str) -> str:
        """``seal`` for text."""
        sealed = self.seal(text.encode())
        return "" if sealed is None else sealed.decode()

    def open_text(self, text: str) -> str:
        """``open`` for text."""
        opened = self.open(text.encode())
        return "" if opened is None else opened.decode()
