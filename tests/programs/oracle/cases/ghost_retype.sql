CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(20), b INT);
INSERT INTO t VALUES (1,'x',10),(2,'y',20),(3,'z',30);

-- the connector takes its snapshot here

create /* gh-ost */ table `_t_gho` like t;
alter /* gh-ost */ table `_t_gho` modify b varchar(20);
insert /* gh-ost */ ignore into `_t_gho` (select * from t);
rename /* gh-ost */ table t to `_t_del`, `_t_gho` to t;
drop table if exists `_t_del`;
UPDATE t SET b='nine' WHERE id=1;
