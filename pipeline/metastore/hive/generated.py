"""The generated classes have no types: what is a value of one is said here once."""

from typing import Any

Struct = Any
"""A value of a class of ``hive_metastore.ttypes``, or a method's arguments."""
