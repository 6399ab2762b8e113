"""The section ``tables.cells``: tables of HBase-like stores, as a table of cells and a wide table derived from it."""
