"""Change events of MySQL and HBase kept as Apache Hudi tables."""
