"""What must hold against those who write topics, run DDL, edit settings or store dumps: docs/threat-model.md."""
