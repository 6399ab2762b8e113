"""Applies DDL of the source to names, columns and rows of lake tables: ``rules`` decide, ``apply`` carries out."""
