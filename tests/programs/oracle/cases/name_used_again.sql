CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(20), b INT);
INSERT INTO t VALUES (1,'x',10),(2,'y',20),(3,'z',30);

-- the connector takes its snapshot here

RENAME TABLE t TO old;
CREATE TABLE t LIKE old;
INSERT INTO t VALUES (9,'n',1);
UPDATE old SET b=1 WHERE id=1;
