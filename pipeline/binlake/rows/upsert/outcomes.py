"""Possible outcomes of a record, by the names that counts, metrics, the log and commands use.

It stands alone: tables, the monitoring of the stream and commands use the same names.
"""

from __future__ import annotations

#: Outcomes of a record that a batch reads for a table: exactly one of these (``route.Counts``).
OUTCOMES = ("applied", "superseded", "filtered", "quarantined")
#: Outcomes of a record that Kafka delivers: an earlier commit may contain it already.
DELIVERED_OUTCOMES = (*OUTCOMES, "already_applied")
