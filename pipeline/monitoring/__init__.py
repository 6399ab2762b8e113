"""What a stream tells of itself: progress, metrics, health, status, and the log for machines."""
