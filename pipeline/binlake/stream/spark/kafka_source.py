"""Spark's Kafka source for a stream: it triggers and plans the batches, and with ``kafka.fetch: spark`` brings records.

Its options hold secrets and decrypted keys; ``session.REDACTED`` makes Spark hide them by their names.
"""

from __future__ import annotations

from functools import partial

from pyspark.sql import DataFrame, SparkSession

from binlake.settings import Settings
from binlake.source.client import GROUP
from binlake.source.java_client import java_properties
from binlake.source.offsets import Offsets
from binlake.stream.spark.java_keys import unlocked


def kafka_source(spark: SparkSession, settings: Settings, start: Offsets) -> DataFrame:
    """The stream's topics from ``start`` on. Raises ConfigError for properties that Spark's client does not support."""
    kafka = settings.kafka
    config = kafka.client_properties()
    reader = (
        spark.readStream.format("kafka")
        .option("kafka.bootstrap.servers", kafka.bootstrap_servers)
        .option("startingOffsets", start.to_text())
        .option("failOnDataLoss", "true")
        .option("maxOffsetsPerTrigger", str(settings.batch.max_events))
        .option("kafka.isolation.level", "read_committed")
        .option("groupIdPrefix", config.get("group.id", GROUP))
    )
    for name, value in java_properties(config, partial(unlocked, spark.sparkContext)).items():
        reader = reader.option(f"kafka.{name}", value)
    if kafka.read_pattern:
        return reader.option("subscribePattern", kafka.read_pattern).load()
    return reader.option("subscribe", ",".join(kafka.read_topics)).load()
