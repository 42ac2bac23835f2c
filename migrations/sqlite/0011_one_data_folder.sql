-- Two processes that begin with a new database at once agree on one id.
delete from data_folder where id <> (select min(id) from data_folder);
create unique index data_folder_one on data_folder ((id is not null));
