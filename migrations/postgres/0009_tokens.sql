-- What models read and wrote for a document, in their own count. Written with the output that was paid for, so that one
-- that is kept is counted once, however often the row is tried again afterwards.
alter table documents add column ocr_tokens bigint not null default 0;
alter table documents add column vector_tokens bigint not null default 0;
alter table documents add column graphrag_tokens bigint not null default 0;
