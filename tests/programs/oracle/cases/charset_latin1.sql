CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(20)) CHARACTER SET utf8mb4;
INSERT INTO t VALUES (1,'naïve'),(2,'x');

-- the connector takes its snapshot here

ALTER TABLE t CONVERT TO CHARACTER SET latin1;
UPDATE t SET a='é' WHERE id=2;
