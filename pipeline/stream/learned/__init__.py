"""What records taught about tables, kept in the stream's state: definitions by DDL, and columns of JSON messages."""
