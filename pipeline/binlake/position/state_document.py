"""JSON documents beside a stream's ledger: one form of a version, and one error for a document that cannot be read.

A document is an object with a ``version`` and its own fields. Each of them says what it is and what a person does about
a damaged one.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from hudilake.errors import CorruptDataError
from hudilake.storage import Storage, StorageNotFoundError

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class StateDocument:
    """One document.

    Args:
        path: below the root of its storage.
        what: what it holds, as an error names it.
        do_next: what a person does about a damaged one.
        version: of its form.
    """

    path: str
    what: str
    do_next: str
    version: int = 1

    def read(self, storage: Storage, parse: Callable[[dict[str, Any]], T]) -> T | None:
        """What the document says; None if there is none.

        Args:
            storage: where it lies.
            parse: makes the value of its fields; ValueError, KeyError, TypeError and AttributeError mean that the
                document is damaged.

        Raises CorruptDataError for a damaged document and one of another version, StorageError.
        """
        try:
            fields = json.loads(storage.read(self.path))
            if (version := fields.pop("version")) != self.version:
                raise ValueError(f"version {version}")
            return parse(fields)
        except StorageNotFoundError:
            return None
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise CorruptDataError(
                f"{self.what} cannot be read: {error}", do_next=self.do_next, path=f"{storage.uri}/{self.path}"
            ) from error

    def write(self, storage: Storage, fields: dict[str, Any]) -> None:
        """Replace the document. Raises StorageError."""
        document = {"version": self.version, **fields}
        storage.write(self.path, json.dumps(document, ensure_ascii=False).encode())
