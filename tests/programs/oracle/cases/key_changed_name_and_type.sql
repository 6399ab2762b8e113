CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(20));
INSERT INTO t VALUES (1,'x'),(2,'y');

-- the connector takes its snapshot here

UPDATE t SET a = 'z' WHERE id = 2;
ALTER TABLE t CHANGE id k VARCHAR(5) NOT NULL;
UPDATE t SET a = 'w' WHERE k = '1';
INSERT INTO t VALUES ('q','q');
