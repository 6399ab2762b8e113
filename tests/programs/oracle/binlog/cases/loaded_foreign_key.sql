-- the foreign key is older than the load; InnoDB writes no event for the rows that it deletes

CREATE TABLE p (id INT PRIMARY KEY);
CREATE TABLE c (id INT PRIMARY KEY, p INT, FOREIGN KEY (p) REFERENCES p (id) ON DELETE CASCADE);
INSERT INTO p VALUES (1), (2);
INSERT INTO c VALUES (1, 1), (2, 2);

-- the connector takes its snapshot here

DELETE FROM p WHERE id = 1;
INSERT INTO c VALUES (3, 2);
