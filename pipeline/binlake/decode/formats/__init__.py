"""One reader for each message format (Debezium JSON and Avro, Canal, Maxwell), and the selection of the reader."""
