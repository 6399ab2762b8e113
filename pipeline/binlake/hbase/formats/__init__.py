"""Readers of HBase-like stores: their events and scans become rows of tables of cells."""
