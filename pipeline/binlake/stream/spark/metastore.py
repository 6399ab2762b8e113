"""The metastore that a Spark session names."""

from __future__ import annotations

from typing import Final

from pyspark.sql import SparkSession

from lakemetastore.client.plans import ServicePlans
from lakemetastore.client.requests import MetastoreClient

#: The property of a session with the addresses of a metastore's HTTP API, with commas between them: it is asked for
#: file slices, and storage if it does not answer.
METASTORE_KEY: Final = "spark.binlake.metastoreUri"


def metastore_of(spark: SparkSession) -> ServicePlans | None:
    """The metastore that a session's properties name, if they do. Raises ConfigError for addresses that are none."""
    uris = spark.conf.get(METASTORE_KEY, None)
    return None if not uris else ServicePlans(MetastoreClient(uris))
