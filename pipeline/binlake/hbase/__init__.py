"""Change events of HBase-like stores: their formats, rules, settings, and the wide tables derived of them."""
