-- A small shop, and the rights that Debezium's user needs beside those on its own database.
GRANT SELECT, RELOAD, SHOW DATABASES, REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO 'debezium'@'%';

USE shop;

CREATE TABLE customers (
  id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY,
  name VARCHAR(80) NOT NULL,
  email VARCHAR(120),
  created TIMESTAMP(3) NOT NULL DEFAULT CURRENT_TIMESTAMP(3)
) DEFAULT CHARSET = utf8mb4;

CREATE TABLE orders (
  id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY,
  customer_id BIGINT UNSIGNED NOT NULL,
  status ENUM('new', 'paid', 'shipped', 'cancelled') NOT NULL DEFAULT 'new',
  total DECIMAL(12, 2) NOT NULL,
  placed_at DATETIME(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6),
  FOREIGN KEY (customer_id) REFERENCES customers (id)
) DEFAULT CHARSET = utf8mb4;

INSERT INTO customers (name, email) VALUES
  ('Ada', 'ada@example.org'), ('Grace', 'grace@example.org'), ('Zoë', NULL);

INSERT INTO orders (customer_id, status, total) VALUES
  (1, 'paid', 129.90), (1, 'new', 5.00), (2, 'shipped', 1024.00), (3, 'cancelled', 0.01);
