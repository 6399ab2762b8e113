CREATE TABLE t (id INT PRIMARY KEY, e ENUM('a','b','c'));
INSERT INTO t VALUES (1,'a'),(2,'b');

-- the connector takes its snapshot here

ALTER TABLE t MODIFY e ENUM('c','b','a');
UPDATE t SET e='c' WHERE id=2;
