"""What each method of the Hive Metastore does, by subject. Each module has a table ``CALLS``: method to handler."""
