CREATE TABLE t (id INT PRIMARY KEY, y YEAR, s SET('x','y'), b BIT(9));
INSERT INTO t VALUES (1,1970,'x,y',b'101010101');

-- the connector takes its snapshot here

ALTER TABLE t ADD COLUMN z YEAR DEFAULT 2155, ADD COLUMN w BIT(9) DEFAULT b'1', ADD COLUMN v SET('p','q') DEFAULT 'p';
