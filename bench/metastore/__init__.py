"""The metastore measured: its log by itself, and its answers beside a Hive Metastore."""
