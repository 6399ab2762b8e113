"""What commits changed: the rows that were inserted, updated and deleted, each once, with their former values."""
