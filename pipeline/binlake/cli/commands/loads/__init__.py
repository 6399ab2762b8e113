"""Commands that bring rows besides the stream: dumps and scans, columns, wide rows, undone and quarantined changes."""
