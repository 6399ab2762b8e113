"""Tables whose index is looked up."""
