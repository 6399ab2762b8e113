"""The streaming DataFrame that plans a stream's batches, in the way of the installed line of Spark.

On Spark 3.5 that is its Kafka source, which with ``kafka.fetch: spark`` brings the records, too.

Options hold secrets and decrypted keys; ``session.REDACTED`` makes Spark hide them by their names.
"""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass
from functools import partial
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark import SparkContext
from pyspark.sql import DataFrame, SparkSession

from binlake.settings import Settings
from binlake.source.client import GROUP
from binlake.source.java_client import java_properties
from binlake.source.offsets import Offsets
from binlake.source.planner import PlannedTopics
from binlake.source.positions import end_offsets
from binlake.stream.spark.lines import check_fetch, connector_coordinate
from hudilake.errors import ConfigError

_ASK_S = 60.0


@dataclass(frozen=True, slots=True)
class PlannedStream:
    """A stream of batches.

    Args:
        frame: what Spark runs; its batches have the planned offsets.
        trigger: the arguments of ``DataStreamWriter.trigger``.
        until: the offsets at which the query is to be stopped; None where Spark ends it by itself, or it has no end.
    """

    frame: DataFrame
    trigger: dict[str, Any]
    until: Offsets | None = None


def planned_stream(
    spark: SparkSession, settings: Settings, start: Offsets, known: Offsets, *, once: bool
) -> PlannedStream:
    """The stream's batches from ``start`` on.

    Args:
        start: where a query without a checkpoint begins.
        known: the end of the last batch in the checkpoint; empty for a new one.
        once: until the records that exist now are planned.

    Raises:
        ConfigError: properties that Spark's client does not take, no access to Kafka, and as ``check_fetch``.
        TransientError: Kafka does not answer.
    """
    endless = {"processingTime": f"{settings.batch.trigger_interval_ms} milliseconds"}
    if connector_coordinate() is not None:
        return PlannedStream(kafka_source(spark, settings, start), {"availableNow": True} if once else endless)
    check_fetch(settings.kafka.fetch)
    from binlake.stream.spark.offset_source import offset_frame  # Spark 3.5 has no data sources in Python

    kafka = settings.kafka
    config, position = kafka.client_properties(), start.furthest(known)
    until = end_offsets(config, position, _ASK_S) if once else None
    most = settings.batch.max_events
    planned = PlannedTopics(config, kafka.read_topics, kafka.read_pattern, position, most, until)
    return PlannedStream(offset_frame(spark, planned), endless, until)


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


_BODY = re.compile(r"-----BEGIN ENCRYPTED PRIVATE KEY-----(.+?)-----END", re.DOTALL)
_DECRYPT = 2  # javax.crypto.Cipher.DECRYPT_MODE


def unlocked(context: SparkContext, pem: str, password: str) -> str:
    """The decrypted key of an encrypted PKCS#8 text, as PEM. Raises ConfigError if the password does not decrypt it."""
    encrypted = _BODY.search(pem)
    gateway: Any = context._gateway
    try:
        opened = _open(gateway, base64.b64decode(encrypted[1] if encrypted else ""), password)
    except Py4JJavaError as error:
        raise ConfigError(
            f"the private key cannot be opened: {error.java_exception.getClass().getSimpleName()}",
            do_next="correct ssl.key.password in kafka.properties, or the key",
        ) from None
    body = base64.encodebytes(opened).decode()
    return f"-----BEGIN PRIVATE KEY-----\n{body}-----END PRIVATE KEY-----\n"


def _open(gateway: Any, der: bytes, password: str) -> bytes:  # noqa: ANN401 - py4j has no types
    crypto = gateway.jvm.javax.crypto
    info = crypto.EncryptedPrivateKeyInfo(bytearray(der))
    parameters = info.getAlgParameters()
    name = parameters.toString() if info.getAlgName() == "PBES2" else info.getAlgName()
    letters = gateway.new_array(gateway.jvm.char, len(password))
    for i, letter in enumerate(password):
        letters[i] = letter
    key = crypto.SecretKeyFactory.getInstance(name).generateSecret(crypto.spec.PBEKeySpec(letters))
    cipher = crypto.Cipher.getInstance(name)
    cipher.init(_DECRYPT, key, parameters)
    return bytes(info.getKeySpec(cipher).getEncoded())
