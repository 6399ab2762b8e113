"""What goes wrong in a catalog, by the names of the Hive Metastore's exceptions."""

from __future__ import annotations

from hudilake.errors import LakeError


class CatalogError(LakeError):
    """A request to the catalog that cannot be carried out. Each class below is an exception of the Hive Metastore."""


class NoSuchObjectError(CatalogError):
    """There is no database, table or partition of that name."""


class AlreadyExistsError(CatalogError):
    """A database, table or partition has that name."""


class InvalidOperationError(CatalogError):
    """The object is not in a state for the request."""


class InvalidObjectError(CatalogError):
    """The object that was sent is wrong in itself."""


class UnknownDatabaseError(CatalogError):
    """There is no database of that name, for calls that name the database's absence so."""


class UnknownTableError(CatalogError):
    """There is no table of that name, for calls that name the table's absence so."""


class MetaError(CatalogError):
    """The request is not understood or cannot be answered, such as a filter that is no condition."""


class InvalidInputError(CatalogError):
    """A value of the request is wrong, such as statistics of a column that the table does not have."""


class ConfigValueError(CatalogError):
    """The client may not ask for that setting."""


class NoSuchLockError(CatalogError):
    """There is no lock of that number: it was released, or its client was silent for too long."""


class NoSuchTransactionError(CatalogError):
    """There is no transaction of that number."""


class TransactionAbortedError(CatalogError):
    """The transaction was aborted."""
