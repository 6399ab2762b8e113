"""One reader a message format (Debezium JSON and Avro, Canal, Maxwell), and the choice among them."""
