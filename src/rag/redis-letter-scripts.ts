import { defineScript } from "./redis-link.ts";
import { COMMON, MOVES } from "./redis-lua.ts";

/**
 * ARGV: now, then for each job that has failed: id, message, list, rag_id, filename, submitted_at, retry_count,
 * max_retries, started_at, failed_at, error, error_type, error_code; newest first. Those that are not known are dead
 * letters again, older than all that are there. Returns how many.
 */
export const BURY_AGAIN = defineScript(
  "bury again",
  "",
  `${COMMON}${MOVES}
local buried = 0
for i = 2, #ARGV, 13 do
  local id, text, line, rag_id = unpack(ARGV, i, i + 3)
  local started_at, failed_at, reason, error_type, error_code = unpack(ARGV, i + 8, i + 12)
  local key = job_key(id)
  if call('EXISTS', key) == 0 then
    create(key, id, { rag_id = rag_id, filename = ARGV[i + 4], status = 'failed', submitted_at = ARGV[i + 5],
      retry_count = tonumber(ARGV[i + 6]), max_retries = tonumber(ARGV[i + 7]), line = line, token = 0 })
    call('HSET', key, 'started_at', started_at, 'failed_at', failed_at, 'error', reason, 'error_type', error_type,
      'error_code', error_code)
    forget_later(key)
    call('RPUSH', DEAD, cjson.encode({ id = id, job_id = id, rag_id = rag_id, reason = reason, error_type = error_type,
      error_code = error_code, failed_at = failed_at, list = line, message = text }))
    buried = buried + 1
  end
end
return buried`,
);

/**
 * ARGV: now, age in ms, how many are looked at. Takes the oldest dead letters away that are older, and returns how many. The
 * list belongs to everybody: what has no date is given one, so that its time comes too.
 */
export const FORGET_DEAD = defineScript(
  "forget dead letters",
  "allow-oom",
  `${COMMON}
local before, letters = iso(now - tonumber(ARGV[2])), call('LRANGE', DEAD, -tonumber(ARGV[3]), -1)
local gone = 0
for i = #letters, 1, -1 do
  local text = letters[i]
  local is_json, letter = pcall(cjson.decode, text)
  if not is_json or type(letter) ~= 'table' or type(letter.message) ~= 'string' then
    letter = { id = 'message-' .. redis.sha1hex(text .. int(now) .. i):sub(1, 16), reason = 'no reason was given', list = '', message = text }
  end
  if type(letter.failed_at) ~= 'string' or not letter.failed_at:find('^%d%d%d%d%-%d%d%-%d%dT') then
    letter.failed_at = today
    call('LSET', DEAD, i - #letters - 1 + gone, cjson.encode(letter))
  elseif letter.failed_at <= before then
    call('LREM', DEAD, -1, text)
    gone = gone + 1
  end
end
return gone`,
);

/**
 * ARGV: now, "redrive" or "purge", how many at most, then ids; without ids, the oldest. Returns how many were taken from
 * the list and then the jobs that were put back into line or forgotten.
 */
export const UNBURY = defineScript(
  "unbury",
  "allow-oom",
  `${COMMON}${MOVES}
local is_redrive, most = ARGV[2] == 'redrive', tonumber(ARGV[3])
local function text_of(value) if type(value) == 'string' then return value end end
-- The list belongs to everybody. What is no letter of ours is a message that somebody has put there.
local function letter_of(text)
  local is_json, letter = pcall(cjson.decode, text)
  if not is_json or type(letter) ~= 'table' or not text_of(letter.message) then return { list = '', message = text } end
  return { id = text_of(letter.id), job_id = text_of(letter.job_id), list = text_of(letter.list) or '', message = letter.message }
end
local wanted = {}
for i = 4, #ARGV do wanted[ARGV[i]] = true end
local letters = {}
if #ARGV < 4 then
  letters = call('RPOP', DEAD, most) or {}
else
  for start = 0, call('LLEN', DEAD) - 1, 500 do
    for _, text in ipairs(call('LRANGE', DEAD, start, start + 499)) do
      local id = letter_of(text).id
      if id and wanted[id] then letters[#letters + 1] = text end
    end
  end
  for _, text in ipairs(letters) do call('LREM', DEAD, 1, text) end
end
local moved = {}
for _, text in ipairs(letters) do
  local letter = letter_of(text)
  local id = letter.job_id
  local status = id and read(id, 'status')[1]
  -- Meanwhile it may have come again by itself.
  local is_open = status == 'queued' or status == 'processing' or status == 'done'
  if not (id and is_open) then
    if is_redrive then
      if status then
        call('PERSIST', job_key(id))
        call('DEL', job_key(id) .. ':ttl')
        call('HSET', job_key(id), 'status', 'queued', 'retry_count', '0', 'failed_at', '', 'duration_seconds', '', 'started_at', '')
      end
      call('LPUSH', list_key(letter.list), letter.message)
    end
    moved[#moved + 1] = id or letter.id or ''
  end
end
return { #letters, moved }`,
);
