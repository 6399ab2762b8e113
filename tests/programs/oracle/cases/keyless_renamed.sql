-- create table
CREATE TABLE t1 (id SMALLINT NOT NULL, part BIGINT NOT NULL, c2 VARCHAR(12));
-- insert
INSERT INTO t1 VALUES (5, 4, 'a'), (11, 12, 'b'), (2, 10, 'c');

-- the connector takes its snapshot here

-- rename table
ALTER TABLE t1 RENAME TO n8;
-- update
UPDATE n8 SET c2 = 'z', id = 7 WHERE id = 2;
