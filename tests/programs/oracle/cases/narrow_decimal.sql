CREATE TABLE t (id INT PRIMARY KEY, b DECIMAL(10,4));
INSERT INTO t VALUES (1,1.2345),(2,-1.5550);

-- the connector takes its snapshot here

ALTER TABLE t MODIFY b DECIMAL(10,2);
