"""The general way: a chunk of messages taken apart into row events, bad ones isolated with a reason."""
