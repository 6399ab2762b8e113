"""The lake's tables on the driver: open tables, their part of a batch, upkeep, catalog, audit, quarantine."""
