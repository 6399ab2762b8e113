"""The running stream: the micro-batch from planned offsets to visible commits, and what it must know."""
