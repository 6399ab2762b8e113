-- create table
CREATE TABLE t1 (id SMALLINT NOT NULL, part BIGINT NOT NULL, c2 VARCHAR(12), PRIMARY KEY (id, part));
-- insert
INSERT INTO t1 VALUES (5, 4, 'a'), (11, 12, 'b'), (2, 10, 'c');

-- the connector takes its snapshot here

-- rename table
ALTER TABLE t1 RENAME TO n8;
-- drop primary key
ALTER TABLE n8 DROP PRIMARY KEY;
-- update
UPDATE n8 SET c2 = 'z', id = 7 WHERE id = 2;
