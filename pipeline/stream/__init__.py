"""The micro-batch and what surrounds it: the only room that wires Spark. It knows no file formats."""
