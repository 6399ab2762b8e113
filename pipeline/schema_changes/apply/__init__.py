"""DDL carried out on lake tables: judged per table, backfilled in one commit, handed to the tasks of a batch."""
