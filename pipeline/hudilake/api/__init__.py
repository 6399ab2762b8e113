"""The public surface: tables opened and created, read, written and looked after. ``hudilake`` shows its names."""
