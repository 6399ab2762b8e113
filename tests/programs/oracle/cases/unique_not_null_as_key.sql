CREATE TABLE t (id INT NOT NULL, a VARCHAR(20), UNIQUE KEY u (id));
INSERT INTO t VALUES (1,'x'),(2,'y');

-- the connector takes its snapshot here

UPDATE t SET id=5 WHERE id=1;
ALTER TABLE t DROP INDEX u;
UPDATE t SET a='q';
