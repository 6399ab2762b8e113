"""Qualifiers as settings spell them.

They may be written as they are (in UTF-8) or with ``\\xHH`` for any byte. The text form (``binlake.decode.cells``) is
one of these spellings: printable ASCII as it is, every other byte, the backslash and the comma as ``\\xHH``.
"""

from __future__ import annotations

import re
from typing import Final

_ESCAPED: Final = re.compile(rb"\\x([0-9A-Fa-f]{2})")
_BARE_BACKSLASH: Final = re.compile(rb"\\(?!x[0-9A-Fa-f]{2})")
#: Texts that Hudi writes into record keys for an empty value and for null; no text form is one of them.
_RESERVED: Final = ("__empty__", "__null__")


def qualifier_bytes(spelled: str) -> bytes | None:
    """The bytes of a qualifier (or of its beginning); None if a backslash begins no ``\\xHH``."""
    data = spelled.encode()
    if _BARE_BACKSLASH.search(data):
        return None
    return _ESCAPED.sub(lambda found: bytes.fromhex(found[1].decode()), data)


def text_form(qualifier: bytes) -> str:
    """The text form of a qualifier."""
    text = "".join(chr(one) if 0x20 <= one <= 0x7E and one not in b"\\," else f"\\x{one:02X}" for one in qualifier)
    return f"\\x5F{text[1:]}" if text in _RESERVED else text
