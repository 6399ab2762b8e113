"""``binlake metastore serve``: the metastore's processes until a signal stops them."""

from __future__ import annotations

import logging
from functools import partial
from typing import Annotated

import typer

from binlake.cli.logs import console_log
from binlake.cli.options import LakeConf
from binlake.cli.text import say, say_json
from lakemetastore.service.run import serve_until_stopped
from lakemetastore.settings.service import MetastoreSettings

AsJson = Annotated[bool, typer.Option("--json", help="Print what it says as JSON lines.")]


def serve(conf: LakeConf, as_json: AsJson = False) -> None:
    """Answer engines by the Hive Metastore's protocol, and readers by HTTP. SIGTERM and Ctrl-C finish the calls in
    hand, then stop."""
    log = partial(console_log, logging.getLogger("lakemetastore").getEffectiveLevel())
    serve_until_stopped(MetastoreSettings.load(conf), log, _say_as_json if as_json else say)


def _say_as_json(line: str) -> None:
    say_json({"said": line})
