"""Progress, metrics, health, status and structured log of a stream."""
