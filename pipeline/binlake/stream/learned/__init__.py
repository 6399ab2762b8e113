"""What records taught about tables, kept in the stream's state: definitions by DDL, columns of JSON
messages, and which tables take records under their rules."""
