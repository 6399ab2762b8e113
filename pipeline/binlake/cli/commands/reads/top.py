"""``binlake top``: the tables of a stream at a terminal, live.

It stands alone: the check for the extra comes before the imports that need it.
"""

# ruff: noqa: E402

from __future__ import annotations

from typing import Annotated

import typer

from hudilake.extras import require_extra

require_extra("binlake", "console", "textual", "jinja2")

from binlake.cli.commands.reads.console import watched
from binlake.cli.console.terminal import LakeTop
from binlake.cli.options import LakeConf
from binlake.settings import Settings


def top(
    conf: LakeConf,
    ask_kafka: Annotated[bool, typer.Option("--kafka/--no-kafka", help="Ask Kafka for the ends of the topics.")] = True,
) -> None:
    """Show the tables of a stream at the terminal, live: the worst first, sorted and filtered by keys."""
    settings = Settings.load(conf)
    with watched({str(conf): settings}, ask_kafka=ask_kafka) as site:
        LakeTop(site.watches[settings.name]).run()
