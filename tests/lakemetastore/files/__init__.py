"""The directories and files of databases, tables and partitions, beside a real metastore and against harm."""
