"""The HTTP API from Python: readers ask it, the stream registers its commits with it."""
