"""The catalog's errors as the exceptions of the Hive Metastore, in one place."""

from __future__ import annotations

from typing import Any

from hive_metastore import ttypes

from hudilake.errors import LakeError
from lakemetastore import errors

_EXCEPTIONS: dict[type[LakeError], Any] = {
    errors.NoSuchObjectError: ttypes.NoSuchObjectException,
    errors.AlreadyExistsError: ttypes.AlreadyExistsException,
    errors.InvalidOperationError: ttypes.InvalidOperationException,
    errors.InvalidObjectError: ttypes.InvalidObjectException,
    errors.UnknownDatabaseError: ttypes.UnknownDBException,
    errors.UnknownTableError: ttypes.UnknownTableException,
    errors.MetaError: ttypes.MetaException,
    errors.InvalidInputError: ttypes.InvalidInputException,
    errors.ConfigValueError: ttypes.ConfigValSecurityException,
    errors.NoSuchLockError: ttypes.NoSuchLockException,
    errors.NoSuchTransactionError: ttypes.NoSuchTxnException,
    errors.TransactionAbortedError: ttypes.TxnAbortedException,
}


def exception(error: LakeError, declared: dict[type, str]) -> tuple[str, Exception] | None:
    """The field of a method's result and the exception in it that say an error; None if the method declares none.

    The text is what happened, as the Hive Metastore says it. What no exception of the method says becomes its
    MetaException, as HMSHandler does with what it does not expect.
    """
    kind = _EXCEPTIONS.get(type(error))
    if kind in declared:
        return declared[kind], kind(message=error.what)
    if ttypes.MetaException in declared:
        text = error.what if kind is None else f"{kind.__name__}(message:{error.what})"
        return declared[ttypes.MetaException], ttypes.MetaException(message=text)
    return None
