"""Records brought back: dumps written and replayed, quarantined records replayed."""
