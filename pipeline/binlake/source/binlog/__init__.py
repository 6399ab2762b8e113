"""The binlog of MySQL and MariaDB, read as a replica does: events, definitions of tables, rows, as records."""
