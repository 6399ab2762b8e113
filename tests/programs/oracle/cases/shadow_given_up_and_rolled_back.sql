CREATE TABLE t (id INT PRIMARY KEY, a VARCHAR(20), b INT);
INSERT INTO t VALUES (1,'x',10),(2,'y',20),(3,'z',30);

-- the connector takes its snapshot here

create table `_t_gho` like t;
alter table `_t_gho` drop column b;
insert ignore into `_t_gho` (id, a) (select id, a from t);
drop table if exists `_t_gho`;
create table `_t_gho` like t;
alter table `_t_gho` modify b varchar(20);
insert ignore into `_t_gho` (select * from t where id < 3);
rename table t to `_t_20240101000000_del`;
rename table `_t_gho` to t;
UPDATE t SET b='nine' WHERE id=1;
rename table t to `_t_new`, `_t_20240101000000_del` to t;
UPDATE t SET b=9 WHERE id=3;
drop table `_t_new`;
INSERT INTO t VALUES (4,'u',40);
