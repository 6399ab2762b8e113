"""Tables of the catalog pushed to other catalogs, which keep a copy."""
