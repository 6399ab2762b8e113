"""What merge engines need of the way of events before the writer: contributions, halves of facts, refusals."""
