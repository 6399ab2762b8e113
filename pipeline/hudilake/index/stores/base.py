"""What the external index asks of a key-value store.

It stands alone: the external index and the opening of stores both know it, and that index imports no store.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, Protocol

#: The longest key that a store must take, in bytes.
MAX_KEY_BYTES: Final = 500


class KeyValueStore(Protocol):
    """Values by key, both bytes; keys of 1 to MAX_KEY_BYTES. Every method may raise StorageError."""

    def get_many(self, keys: Sequence[bytes]) -> list[bytes | None]:
        """The values of some keys, in their order; None for a key without one."""
        ...

    def put_many(self, entries: Mapping[bytes, bytes]) -> None:
        """Write entries over those that there are, durable on return. After a failure some may be written."""
        ...
