CREATE TABLE t (id INT NOT NULL, a VARCHAR(20));
INSERT INTO t VALUES (1,'x'),(2,'y');

-- the connector takes its snapshot here

UPDATE t SET a='q' WHERE id=1;
ALTER TABLE t ADD UNIQUE KEY u (id);
UPDATE t SET a='r';
