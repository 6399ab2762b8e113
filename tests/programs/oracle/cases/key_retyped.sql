CREATE TABLE dec_key (k DECIMAL(6,2) PRIMARY KEY, b INT);
CREATE TABLE int_dec (k INT PRIMARY KEY, b INT);
CREATE TABLE var_int (k VARCHAR(10) PRIMARY KEY, b INT);
CREATE TABLE int_char (k INT PRIMARY KEY, b INT);
CREATE TABLE dt_date (k DATETIME PRIMARY KEY, b INT);
INSERT INTO dec_key VALUES (1.25, 1), (2.5, 2);
INSERT INTO int_dec VALUES (1, 1), (2, 2);
INSERT INTO var_int VALUES ('1', 1), ('2', 2);
INSERT INTO int_char VALUES (1, 1), (2, 2);
INSERT INTO dt_date VALUES ('2024-01-01 00:00:00', 1), ('2024-01-02 00:00:00', 2);

-- the connector takes its snapshot here

UPDATE dec_key SET b = 3 WHERE k = 1.25;
ALTER TABLE dec_key MODIFY k DECIMAL(8,4) NOT NULL;
UPDATE dec_key SET b = 4 WHERE k = 2.5;
UPDATE int_dec SET b = 3 WHERE k = 1;
ALTER TABLE int_dec MODIFY k DECIMAL(8,1) NOT NULL;
UPDATE int_dec SET b = 4 WHERE k = 2;
UPDATE var_int SET b = 3 WHERE k = '1';
ALTER TABLE var_int MODIFY k INT NOT NULL;
UPDATE var_int SET b = 4 WHERE k = 2;
UPDATE int_char SET b = 3 WHERE k = 1;
ALTER TABLE int_char MODIFY k VARCHAR(5) NOT NULL;
UPDATE int_char SET b = 4 WHERE k = '2';
UPDATE dt_date SET b = 3 WHERE b = 1;
ALTER TABLE dt_date MODIFY k DATE NOT NULL;
UPDATE dt_date SET b = 4 WHERE b = 2;
