"""One batch of a stream: its plan, its tables in turn, what it counts and what it teaches the next one."""
