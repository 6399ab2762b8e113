"""Topics that are no change events: their tables, declared and inferred."""
