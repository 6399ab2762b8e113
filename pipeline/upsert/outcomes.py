"""What may become of a record, by the names that counts, metrics, the log and commands use."""

from __future__ import annotations

#: Of a record that a batch reads for a table: exactly one of these (``route.Counts``).
OUTCOMES = ("applied", "superseded", "filtered", "quarantined")
#: Of a record that Kafka delivers: a commit before this one may hold it already.
DELIVERED_OUTCOMES = (*OUTCOMES, "already_applied")
