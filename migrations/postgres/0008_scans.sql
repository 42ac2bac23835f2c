-- A page without usable text waits for OCR in a line of its own: pages that have text do not wait behind it.
alter table task_queue_page add column is_scan boolean not null default false;
