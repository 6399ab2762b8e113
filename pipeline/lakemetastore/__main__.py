"""``python -m lakemetastore``: the service alone. ``binlake metastore`` has further commands.

``serve CONF`` answers until SIGTERM or Ctrl-C; ``config-schema`` prints what CONF may say.
"""

from __future__ import annotations

import argparse
import json
import sys

from hudilake.errors import LakeError
from lakemetastore.service.run import log_to_stderr, serve_until_stopped
from lakemetastore.settings.service import MetastoreSettings


def main(arguments: list[str] | None = None) -> int:
    """Run a command; the exit code of the process. ``arguments``: those of the process if None."""
    parser = argparse.ArgumentParser("python -m lakemetastore", description="A metastore of lakes, for engines.")
    commands = parser.add_subparsers(dest="command", required=True)
    serve = commands.add_parser("serve", help="answer engines by the Hive Metastore's protocol, and readers by HTTP")
    serve.add_argument("conf", help="the settings file of the metastore (YAML)")
    commands.add_parser("config-schema", help="print the JSON schema of the settings file")
    given = parser.parse_args(arguments)
    if given.command == "config-schema":
        _say(json.dumps(MetastoreSettings.model_json_schema(), indent=2))
        return 0
    try:
        with log_to_stderr():
            serve_until_stopped(MetastoreSettings.load(given.conf), log_to_stderr, _say)
    except LakeError as error:
        sys.stderr.write(f"error: {error}\n")
        return error.exit_code
    return 0


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
