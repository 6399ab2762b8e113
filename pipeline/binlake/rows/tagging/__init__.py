"""Rows of tables whose index is looked up: where they go, what moves, which file group takes new ones."""
