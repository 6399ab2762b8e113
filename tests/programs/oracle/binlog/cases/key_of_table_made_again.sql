CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(20));
INSERT INTO t VALUES (1,'x'),(2,'y');

-- the connector takes its snapshot here

UPDATE t SET a='q' WHERE id=1;
DROP TABLE t;
CREATE TABLE t (k INT NOT NULL, b VARCHAR(10), UNIQUE KEY u (k));
INSERT INTO t VALUES (1,'x'),(5,'y');
UPDATE t SET b='z' WHERE k=5;
DROP TABLE t;
CREATE TABLE t (k INT, b VARCHAR(10));
CREATE UNIQUE INDEX i ON t (k);
INSERT INTO t VALUES (1,'x'),(NULL,'y'),(NULL,'y');
