"""The source's tables on the driver: declared, learned from a DDL topic, or inferred from messages."""
