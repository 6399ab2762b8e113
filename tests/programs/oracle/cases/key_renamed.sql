CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(20), b INT);
INSERT INTO t VALUES (1,'x',10),(2,'y',20),(3,'z',30);

-- the connector takes its snapshot here

ALTER TABLE t CHANGE id k INT NOT NULL;
UPDATE t SET b=6 WHERE k=1;
INSERT INTO t VALUES (7,'q',1);
