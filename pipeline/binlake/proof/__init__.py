"""The lake compared with its source, and the history of a row."""
