"""The general decoder: it splits a chunk of messages into row events and isolates bad ones with a reason."""
