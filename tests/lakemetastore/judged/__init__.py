"""The metastore beside a real Hive Metastore: the same calls, the same answers."""
