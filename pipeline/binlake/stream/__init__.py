"""The running stream: the micro-batch from planned offsets to visible commits, and the schemas and state it needs."""
