-- What the shop asks: single users, a page, and users on a part of the shop.
select * from t where user_id = 1017;
select count(*) from t where user_id = 2044;
select avg(took_ms) from t where url = 'http://www.shop.example/books/0007.html';
select avg(took_ms) from t where url like 'http://www.shop.example/garden/%';
select user_id from t where url like 'http://www.shop.example/toys/%' and user_id between 500 and 700;
