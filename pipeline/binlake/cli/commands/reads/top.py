"""``binlake top``: the tables of a stream at a terminal, live.

It stands alone: the check for the extra comes before the imports that need it.
"""

# ruff: noqa: E402

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from hudilake.extras import require_extra

require_extra("binlake", "console", "textual", "jinja2")

from binlake.cli.commands.reads.console import watched
from binlake.cli.console.lake_page import WORST_FIRST, lake_rows, matching
from binlake.cli.console.terminal import LakeTop
from binlake.cli.console.watch import StreamWatch
from binlake.cli.options import LakeConf
from binlake.cli.text import say_json
from binlake.settings import Settings


def top(
    conf: LakeConf,
    ask_kafka: Annotated[bool, typer.Option("--kafka/--no-kafka", help="Ask Kafka for the ends of the topics.")] = True,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print a JSON line for every table as it is now, the worst first, and end.")
    ] = False,
) -> None:
    """Show the tables of a stream at the terminal, live: the worst first, sorted and filtered by keys."""
    settings = Settings.load(conf)
    if as_json:
        watch = StreamWatch(settings, str(conf), ask_kafka=ask_kafka)
        watch.look_whole()
        for row in matching(lake_rows(watch.view, settings), "", WORST_FIRST):
            say_json(asdict(row))
        return
    with watched({str(conf): settings}, ask_kafka=ask_kafka) as site:
        LakeTop(site.watches[settings.name]).run()
