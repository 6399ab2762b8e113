"""Wide tables derived from tables of cells: which rows a commit touched, their cells, and the commit of their rows."""
