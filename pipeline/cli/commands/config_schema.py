"""``binlake config-schema``: what a settings file may say."""

from __future__ import annotations

import sys

from pipeline.settings import json_schema


def config_schema() -> None:
    """Print the JSON schema of the settings file."""
    sys.stdout.write(json_schema() + "\n")
