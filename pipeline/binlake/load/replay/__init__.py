"""Writes dumps of Kafka records, and replays dumps and quarantined records."""
