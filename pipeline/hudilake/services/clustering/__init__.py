"""Clustering: rows are laid out anew across file groups, in one replacecommit."""
