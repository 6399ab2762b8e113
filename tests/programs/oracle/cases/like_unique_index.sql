CREATE TABLE m (id INT NOT NULL, a VARCHAR(10), UNIQUE KEY u (id));
INSERT INTO m VALUES (1,'x');

-- the connector takes its snapshot here

CREATE TABLE t LIKE m;
INSERT INTO t VALUES (1,'x'),(2,'y');
ALTER TABLE t DROP INDEX u;
INSERT INTO t VALUES (1,'z'),(2,'y');
DELETE FROM t WHERE id=2 LIMIT 1;
