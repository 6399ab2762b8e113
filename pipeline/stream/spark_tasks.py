"""Plain functions over plain values, as Spark tasks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.errors import PySparkException

from pipeline.errors import BinlakeError, TransientError

T = TypeVar("T")
R = TypeVar("R")


def map_in_tasks(context: SparkContext, function: Callable[[T], R], items: Sequence[T], slots: int) -> list[R]:
    """The function's results, in order; at most ``slots`` tasks at once.

    Raises the BinlakeError that a task raised, TransientError if the job failed otherwise.
    """

    def attempt(item: T) -> R | BinlakeError:
        try:
            return function(item)
        except BinlakeError as error:
            return error

    if not items:
        return []
    try:
        found = context.parallelize(list(items), min(slots, len(items))).map(attempt).collect()
    except (Py4JError, PySparkException) as error:
        raise TransientError(f"a Spark job failed: {_cause(error)}", do_next="see Spark's log") from error
    results: list[R] = []
    for result in found:
        if isinstance(result, BinlakeError):
            raise result
        results.append(result)
    return results


def _cause(error: Exception) -> str:
    """The first line that says something: Spark puts the task's Python traceback in the middle of its message."""
    lines = str(error).splitlines() or [type(error).__name__]
    return next((line.strip() for line in lines if "Error" in line and "Py4J" not in line), lines[0])
