"""What the stream learns from the connector while a table is fetched anew: its notifications, and the topics' ends."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pipeline.settings import Settings
from pipeline.source.log_tail import LogTail
from pipeline.source.offsets import Offsets
from pipeline.source.positions import end_offsets

_ASK_S = 10.0


@dataclass
class SignalledConnector:
    """The connector of a stream, by its topic of notifications. See ``resync.Connector``."""

    config: dict[str, str]
    tail: LogTail

    @staticmethod
    def of(settings: Settings) -> SignalledConnector | None:
        """The connector that the settings describe; None if they name no topic of notifications."""
        topic, config = settings.source.debezium.notification_topic, settings.kafka.client_properties()
        return SignalledConnector(config, LogTail(config, topic)) if topic is not None else None

    def notifications(self) -> Iterable[bytes]:
        """See ``resync.Connector``."""
        return [value for records in self.tail.poll() for value in records.values if value is not None]

    def ends(self, places: Offsets) -> Offsets:
        """See ``resync.Connector``."""
        return end_offsets(self.config, places, _ASK_S)
