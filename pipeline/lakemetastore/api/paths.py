"""The paths of the HTTP API.

It stands alone: client and service both need them, and the client may not import the service.
"""

from __future__ import annotations

from typing import Final

DATABASES: Final = "/v1/databases"
TABLES: Final = "/v1/databases/{database}/tables"
DEFINITION: Final = "/v1/databases/{database}/tables/{table}"
#: A lake table, named by ``table=database.table`` or ``location=URI``.
TABLE: Final = "/v1/lake/table"
PARTITIONS: Final = "/v1/lake/partitions"
SLICES: Final = "/v1/lake/slices"
RANGES: Final = "/v1/lake/ranges"
SCHEMA: Final = "/v1/lake/schema"
PLAN: Final = "/v1/lake/plan"
INSTANTS: Final = "/v1/lake/instants"
CHANGES: Final = "/v1/lake/changes"
HEALTH: Final = "/health"
METRICS: Final = "/metrics"
