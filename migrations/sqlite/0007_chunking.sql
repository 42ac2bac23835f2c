-- How a document is cut, where not as usual: {"tokens": …, "overlap": …}. It stays with the document, so that whoever
-- chunks it, now or when it is done again, cuts it alike.
alter table documents add column chunking text;
