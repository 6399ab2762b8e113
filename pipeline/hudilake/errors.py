"""The error tree: what happened, where, and what to do next.

Every error carries a ``where`` mapping (table, partition, file group, instant, offsets, path: whichever apply) and a
``do_next`` sentence, and belongs to one class with one exit code, so that a supervisor can tell a mistake in the
settings from a passing outage without reading text.
"""

from __future__ import annotations

from typing import Any, ClassVar


class LakeError(Exception):
    """Base of all errors that binlake raises on purpose.

    Args:
        what: one sentence, what happened.
        do_next: one sentence, what the operator does now.
        where: keyword facts that place it (``table=``, ``instant=``, ``topic=``, ``offsets=``, ``path=``...).

    Example:
        >>> try:
        ...     hudilake.open_table(uri)
        ... except hudilake.LakeError as error:
        ...     print(type(error).__name__, error.exit_code)
        ConfigError 2
    """

    exit_code: ClassVar[int] = 1

    def __init__(self, what: str, *, do_next: str = "", **where: Any) -> None:  # noqa: ANN401 - facts of any type
        self.what = what
        self.do_next = do_next
        self.where = {k: v for k, v in where.items() if v is not None}
        super().__init__(what)

    def __str__(self) -> str:
        place = ", ".join(f"{k}={v}" for k, v in self.where.items())
        text = f"{self.what} [{place}]" if place else self.what
        return f"{text}. Next: {self.do_next}" if self.do_next else text

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle with all fields: errors cross from Spark tasks to the driver."""
        return _rebuild, (type(self), self.what, self.do_next, self.where)


def _rebuild(kind: type[LakeError], what: str, do_next: str, where: dict[str, Any]) -> LakeError:
    error = kind.__new__(kind)
    LakeError.__init__(error, what, do_next=do_next, **where)
    return error


class ConfigError(LakeError):
    """The settings (or the table's configuration) are wrong; nothing was written. Fix them, start again.

    Example:
        >>> orders.scan(filter="qty >")
        Traceback (most recent call last):
        hudilake.errors.ConfigError: ...
    """

    exit_code = 2


def reversed_window(begin: object, end: object) -> ConfigError:
    """The error for a window that nothing can be in, for its end is before its beginning, or at it."""
    return ConfigError(
        "the window is empty: its end is not behind its beginning", do_next="change them over", begin=begin, end=end
    )


class TransientError(LakeError):
    """Something outside failed and may pass (storage, network, broker). Safe to start again as is.

    Example:
        >>> issubclass(hudilake.OvertakenError, hudilake.TransientError)  # write again
        True
    """

    exit_code = 75


class BadInputError(LakeError):
    """Input that cannot be applied: too many quarantined records, or a gap in what was shown to us."""

    exit_code = 65


class CorruptDataError(LakeError):
    """Bytes on storage are not what the format says. Never decoded silently.

    Example:
        >>> storage = hudilake.open_storage(orders.uri)
        >>> storage.write(".hoodie/hoodie.properties", b"hoodie.table.version=9")
        >>> hudilake.open_table(orders.uri)
        Traceback (most recent call last):
        hudilake.errors.CorruptDataError: ...
    """

    exit_code = 66


class LostOwnershipError(LakeError):
    """Another writer has taken the table, or the same instant was completed by somebody else.

    Example:
        >>> issubclass(hudilake.LostOwnershipError, hudilake.TransientError)  # a person must look
        False
    """

    exit_code = 70


class UnsupportedError(LakeError):
    """A valid thing that binlake cannot honour (a foreign table feature, a type): refused before writing.

    Example:
        >>> table = hudilake.create_table(uri, orders.schema, key="id", order_by="updated_at", index="bloom")
        >>> table.upsert([{"id": 1, "qty": 1, "day": "d", "updated_at": 1}])
        Traceback (most recent call last):
        hudilake.errors.UnsupportedError: ...
    """

    exit_code = 69


class TableStoppedError(LakeError):
    """Single tables cannot go on until a person acts. Their records wait; all other tables are up to date."""

    exit_code = 80


class CommitUnknownError(TransientError):
    """The outcome of the completing write is unknown. It is read back before anything is retried.

    Example:
        >>> issubclass(hudilake.CommitUnknownError, hudilake.TransientError)  # look at the history, then decide
        True
    """

    exit_code = 75
