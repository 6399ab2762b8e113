"""``binlake config-schema``: what a settings file may say.

It stands alone: an editor that asks for the schema imports the settings and nothing of the stream.
"""

from __future__ import annotations

import json
import sys
from typing import Annotated

import typer

from binlake.cli.options import OnlyJson
from binlake.settings import json_schema
from lakemetastore.settings.service import MetastoreSettings

OfMetastore = Annotated[bool, typer.Option("--metastore", help="The file of a metastore, not that of a stream.")]


def config_schema(metastore: OfMetastore = False, as_json: OnlyJson = False) -> None:
    """Print the JSON schema of the settings file."""
    text = json.dumps(MetastoreSettings.model_json_schema(), indent=2) if metastore else json_schema()
    sys.stdout.write(text + "\n")
