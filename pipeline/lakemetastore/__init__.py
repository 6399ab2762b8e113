"""The metastore of a lake: databases, tables, partitions and the state of each table, as commits; and its services."""
