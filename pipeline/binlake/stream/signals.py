"""What the stream learns from the connector while a table is fetched anew: its notifications, and the topics' ends."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from binlake.position.table_requests import ResyncRequest
from binlake.settings import Settings
from binlake.source.log_tail import LogTail
from binlake.source.offsets import Offsets
from binlake.source.positions import end_offsets
from binlake.source.signals import SnapshotSignal, send_signal
from hudilake.errors import ConfigError

_ASK_S = 10.0


@dataclass
class SignalledConnector:
    """The connector of a stream, by its topics of notifications and of ``signals``. See ``resync.Connector``."""

    config: dict[str, str]
    tail: LogTail
    signals: str | None

    @staticmethod
    def of(settings: Settings) -> SignalledConnector | None:
        """The connector that the settings describe; None if they name no topic of notifications."""
        debezium, config = settings.source.debezium, settings.kafka.client_properties()
        if debezium.notification_topic is None:
            return None
        return SignalledConnector(config, LogTail(config, debezium.notification_topic), debezium.signal_topic)

    def signal(self, request: ResyncRequest) -> None:
        """See ``resync.Connector``."""
        if self.signals is None:
            raise ConfigError(
                "the settings do not name the connector's topic of signals", do_next="set source.debezium.signal_topic"
            )
        send_signal(self.config, self.signals, SnapshotSignal(request.id, request.prefix, request.origin))

    def notifications(self) -> Iterable[bytes]:
        """See ``resync.Connector``."""
        return [value for records in self.tail.poll() for value in records.values if value is not None]

    def ends(self, places: Offsets) -> Offsets:
        """See ``resync.Connector``."""
        return end_offsets(self.config, places, _ASK_S)
