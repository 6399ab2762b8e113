CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(20));
INSERT INTO t VALUES (1,'x'),(2,'y');

-- the connector takes its snapshot here

UPDATE t SET a = 'z' WHERE id = 2;
DROP TABLE t;
CREATE TABLE t (id VARCHAR(36) PRIMARY KEY, a VARCHAR(20));
INSERT INTO t VALUES ('1','new'),('u','v');
