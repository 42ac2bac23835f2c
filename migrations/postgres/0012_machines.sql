-- Which machine's path a document came from: the same path on two machines is two documents. Null: of before, or of no
-- machine; such a one belongs to whoever looks for its path.
alter table documents add column seen_on text;
drop index documents_source;
create unique index documents_source on documents (tenant, collection, source, coalesce(seen_on, '')) where replaced_by is null;

-- The machine whose workers alone may take the item; '' is any.
alter table unified_queue add column seen_on text not null default '';

-- Where this database keeps its files: "folder", the data folder, or the address of a bucket. Null until somebody says.
alter table data_folder add column files text;
