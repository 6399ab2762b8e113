"""The lake's tables on the driver: open tables, their part of a batch, table services, catalog, audit, quarantine."""
