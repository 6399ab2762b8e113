"""Commands around the stream: its settings, its checks, the run, its state, requests to it, and what it dumps."""
