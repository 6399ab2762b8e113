"""What it costs to derive wide rows from a large table of cells; ``bench/README.md`` says what was measured."""
