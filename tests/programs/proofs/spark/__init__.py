"""Tables of Hudi's Spark writer, drawn by a seed, as binlake and Hudi's Spark reader read them."""
