"""The rules of HBase-like stores as pure functions over Arrow: which cells are visible, and the wide rows of them."""
