"""Conversion of stored values when a statement gives a column another type: as MySQL and MariaDB convert them."""
