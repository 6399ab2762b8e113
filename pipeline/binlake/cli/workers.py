"""Where the tasks of a command run: in threads, or in Spark tasks."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated, TypeVar

import typer

from binlake.settings import Settings
from hudilake.services.planned import MapTasks

CORES = os.cpu_count() or 1
T = TypeVar("T")
R = TypeVar("R")

OnSpark = Annotated[bool, typer.Option("--spark", help="Work in Spark tasks, by the settings' spark section.")]
Threads = Annotated[int, typer.Option(help="Threads to use without --spark.", min=1)]


@contextlib.contextmanager
def workers(settings: Settings, on_spark: bool, threads: int) -> Iterator[MapTasks]:
    """What runs the tasks of a command, until the end of the block."""
    if on_spark:
        from binlake.stream.spark.session import spark_session  # without --spark no command imports Spark
        from binlake.stream.spark.tasks import map_in_tasks

        session = spark_session(settings)
        try:
            context = session.sparkContext

            def in_spark(function: Callable[[T], R], items: Sequence[T], /) -> list[R]:
                return map_in_tasks(context, function, items, context.defaultParallelism)

            yield in_spark
        finally:
            session.stop()
        return
    with ThreadPoolExecutor(threads, thread_name_prefix="binlake-task") as pool:

        def in_threads(function: Callable[[T], R], items: Sequence[T], /) -> list[R]:
            return list(pool.map(function, items))

        yield in_threads
