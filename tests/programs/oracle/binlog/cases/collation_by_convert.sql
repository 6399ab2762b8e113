CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(9) COLLATE utf8mb4_bin, g INT AS (a = 'X') STORED, v INT AS (a = 'X') VIRTUAL, c VARCHAR(20) AS (CONCAT(a, '-')) STORED) CHARACTER SET utf8mb4;
INSERT INTO t (id, a) VALUES (1, 'x');

-- the connector takes its snapshot here

INSERT INTO t (id, a) VALUES (2, 'X');
ALTER TABLE t CONVERT TO CHARACTER SET utf8mb4;
INSERT INTO t (id, a) VALUES (3, 'x');
