"""Runs plain functions over plain values as Spark tasks, and extracts the cause of a failure from Spark's errors."""

from __future__ import annotations

import contextlib
import re
import subprocess
from collections.abc import Callable, Sequence
from typing import TypeVar

from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.errors import PySparkException

from hudilake.errors import LakeError, TransientError
from hudilake.services.planned import MapTasks

T = TypeVar("T")
R = TypeVar("R")


def map_in_tasks(context: SparkContext, function: Callable[[T], R], items: Sequence[T], slots: int) -> list[R]:
    """The function's results, in order; at most ``slots`` tasks at once.

    Raises the LakeError that a task raised, TransientError if the job failed otherwise.
    """

    def attempt(item: T) -> R | LakeError:
        try:
            return function(item)
        except LakeError as error:
            return error

    if not items:
        return []
    try:
        outcomes = context.parallelize(list(items), min(slots, len(items))).map(attempt).collect()
    except (Py4JError, PySparkException) as error:
        raise TransientError(f"a Spark job failed: {cause_of(error)}", do_next="see Spark's log") from error
    results: list[R] = []
    for result in outcomes:
        if isinstance(result, LakeError):
            raise result
        results.append(result)
    return results


def jvm_has_ended(context: SparkContext, *, within_s: float = 0.0) -> bool:
    """Whether the JVM that this process started is gone, or goes in that time: killed, out of memory, crashed. Its
    connections break a moment before it is seen to have ended."""
    process = getattr(context._gateway, "proc", None)  # None under spark-submit, which started the JVM itself
    if process is None:
        return False
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(within_s)
    return process.returncode is not None


def cause_of(error: Exception) -> str:
    """The line with the cause: the last error that a traceback in the text names, else the first line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    named = [line for line in lines if re.match(r"[\w.]*(Error|Exception)\b", line) and not line.startswith("py4j.")]
    return (named or lines or [type(error).__name__])[-1 if named else 0]


def service_tasks(context: SparkContext) -> MapTasks:
    """What runs the tasks of table services: in a scheduler pool of their own, one core is left free for batches."""

    def run(function: Callable[[T], R], items: Sequence[T], /) -> list[R]:
        context.setLocalProperty("spark.scheduler.pool", "compaction")
        return map_in_tasks(context, function, items, max(1, context.defaultParallelism - 1))

    return run
