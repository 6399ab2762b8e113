"""Databases, tables and partitions kept as logs, with the rules and the errors of the Hive Metastore."""
