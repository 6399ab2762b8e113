CREATE TABLE t (id INT, a VARCHAR(20), b INT);
INSERT INTO t VALUES (1,'x',10),(2,'y',20),(3,'z',30);

-- the connector takes its snapshot here

INSERT INTO t VALUES (4,'q',40);
ALTER TABLE t ADD PRIMARY KEY (id);
UPDATE t SET b=6 WHERE id=1;
