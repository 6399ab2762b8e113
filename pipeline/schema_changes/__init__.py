"""What DDL at the source does to names, columns and rows of lake tables: ``rules`` decide, ``apply`` carries out."""
