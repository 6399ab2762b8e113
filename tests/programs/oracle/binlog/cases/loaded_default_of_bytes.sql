CREATE TABLE t (id INT PRIMARY KEY, a VARBINARY(9) DEFAULT x'BE01');
INSERT INTO t (id) VALUES (1);

-- the connector takes its snapshot here

INSERT INTO t (id) VALUES (2);
