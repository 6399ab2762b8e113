CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(20), b INT);
INSERT INTO t VALUES (1,'x',10),(2,'y',20),(3,'z',30);
CREATE TABLE u (id INT PRIMARY KEY, z DATE);
INSERT INTO u VALUES (1,'2020-01-01');

-- the connector takes its snapshot here

UPDATE u SET z='2021-01-01';
RENAME TABLE t TO tmp, u TO t, tmp TO u;
UPDATE t SET z='2022-02-02';
UPDATE u SET b=5 WHERE id=3;
