"""``binlake metastore serve``: the metastore's processes until a signal stops them."""

from __future__ import annotations

import logging
from functools import partial

from binlake.cli.logs import console_log
from binlake.cli.options import LakeConf
from binlake.cli.text import say
from lakemetastore.service.run import serve_until_stopped
from lakemetastore.settings.service import MetastoreSettings


def serve(conf: LakeConf) -> None:
    """Answer engines by the Hive Metastore's protocol, and readers by HTTP. SIGTERM and Ctrl-C finish the calls in
    hand, then stop."""
    log = partial(console_log, logging.getLogger("lakemetastore").getEffectiveLevel())
    serve_until_stopped(MetastoreSettings.load(conf), log, say)
