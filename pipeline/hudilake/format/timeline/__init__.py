"""The timeline: instants, commit metadata, and the history of archived instants."""
