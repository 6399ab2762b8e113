"""Two streams into one table, beside Hudi's and Paimon's partial updates; and a column added to a wide table."""
