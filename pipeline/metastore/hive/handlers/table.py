"""All methods that are served."""

from __future__ import annotations

from pipeline.metastore.hive.handlers import server
from pipeline.metastore.hive.methods import Method, methods

METHODS: dict[str, Method] = methods({**server.CALLS})
