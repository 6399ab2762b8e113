"""The requests and answers of the HTTP API as values."""
