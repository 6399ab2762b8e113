CREATE TABLE t (id INT, a VARCHAR(20), UNIQUE KEY u (id));
INSERT INTO t VALUES (1,'x'),(2,'y');

-- the connector takes its snapshot here

UPDATE t SET a='q' WHERE id=1;
ALTER TABLE t MODIFY id INT NOT NULL;
UPDATE t SET a='r' WHERE id=2;
INSERT INTO t VALUES (3,'z');
ALTER TABLE t MODIFY id INT NULL;
UPDATE t SET a='s' WHERE id=1;
INSERT INTO t VALUES (NULL,'n'),(NULL,'n');
