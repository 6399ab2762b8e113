"""Other bucket counts for a table: its rows move to new file groups, and one replacecommit publishes them."""
