import { MALFORMED } from "./queue.ts";
import { defineScript } from "./redis-link.ts";
import { COMMON, MOVES } from "./redis-lua.ts";

// Every transition of a job is one of these. What a worker writes is guarded by the token of its claim.

/**
 * ARGV: now, worker, lease in ms, how many, most bytes of a message, ledger, then lists and what a turn of each costs.
 * Returns whether the ledger is known, whether more may be waiting, how many were buried, and six values for each claim.
 */
export const CLAIM = defineScript(
  "claim",
  "",
  `${COMMON}${MOVES}
local worker, lease_ms, wanted, bytes_max = ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local lines = {}
for i = 7, #ARGV, 2 do lines[#lines + 1] = ARGV[i] end
local tags = call('HMGET', TURNS, ' now', unpack(lines))
local clock = tonumber(tags[1]) or 0
-- A list that begins to wait does so now, however long it rested; while it waits its place stays the same ("+").
local waiting, turns = {}, {}
for i, line in ipairs(lines) do
  local left = call('LLEN', list_key(line))
  local tag = tags[i + 1] or '0'
  local was_waiting = tag:sub(1, 1) == '+'
  if left > 0 then
    tag = was_waiting and tonumber(tag) or math.max(tonumber(tag), clock)
    waiting[#waiting + 1] = { line = line, left = left, cost = tonumber(ARGV[6 + 2 * i]), tag = tag }
  elseif was_waiting then
    turns[#turns + 1] = line
    turns[#turns + 1] = tag:sub(2)
  end
end

-- Whose turn would end first is next; lists are in the order that decides between equals.
local function take(count)
  local order, asked = {}, {}
  while #order < count do
    local best
    for _, one in ipairs(waiting) do
      if one.left > 0 and (not best or one.tag + one.cost < best.tag + best.cost) then best = one end
    end
    if not best then break end
    clock = math.max(clock, best.tag)
    best.tag = best.tag + best.cost
    best.left = best.left - 1
    order[#order + 1] = best.line
    asked[best.line] = (asked[best.line] or 0) + 1
  end
  local popped = {}
  for line, many in pairs(asked) do popped[line] = call('RPOP', list_key(line), many) end
  local next_of, texts = {}, {}
  for i, line in ipairs(order) do
    local at = (next_of[line] or 0) + 1
    next_of[line] = at
    texts[i] = popped[line][at]
  end
  return order, texts
end

local buried = 0
local function bury(text, line, reason)
  buried = buried + 1
  local id = 'message-' .. redis.sha1hex(text .. int(now) .. buried):sub(1, 16)
  call('LPUSH', DEAD, cjson.encode({ id = id, reason = 'malformed message: ' .. reason, failed_at = today,
    error_type = '${MALFORMED.error_type}', error_code = '${MALFORMED.error_code}', list = line, message = text:sub(1, bytes_max) }))
end

local function decoded(text)
  if #text > bytes_max then return nil, 'it has more than ' .. bytes_max .. ' bytes: name a file instead of sending one' end
  local is_json, job = pcall(cjson.decode, text)
  if not is_json then return nil, 'it is not JSON' end
  if type(job) ~= 'table' then return nil, 'it is no object' end
  local id = job.job_id
  if type(id) ~= 'string' then return nil, 'job_id: give a text' end
  if #id > 200 or not id:find('^%w[%w_.@-]*$') then
    return nil, 'job_id: use 1 to 200 letters, digits and _ . @ - and begin with a letter or a digit'
  end
  return job
end

local function text_of(value) if type(value) == 'string' then return value end return '' end
local function count_of(value, fallback)
  if type(value) == 'number' and value >= 0 and value <= 1000 then return math.floor(value) end
  return fallback
end

local claims, leases, messages = {}, {}, {}
local lease_until = int(now + lease_ms)
local seen = {}
local function claim(text, line, job)
  local id = job.job_id
  local key = job_key(id)
  local known = read_at(key, 'status', 'lease_token', 'retry_count', 'max_retries', 'worker_id')
  local status = known[1]
  -- The same job again: it runs, is done, or waits for its next try.
  if seen[id] or status == 'done' then return end
  if known[5] and known[5] ~= '' and is_leased(id) then return end
  if status == 'queued' and call('ZSCORE', DELAYED, id) then return end
  seen[id] = true
  local token = math.max((tonumber(known[2]) or 0) + 1, now)
  local spent, most = tonumber(known[3]), tonumber(known[4])
  if not (spent and most and known[2] and (status == 'queued' or status == 'processing')) then
    spent, most = count_of(job.retry_count, 0), count_of(job.max_retries, 3)
    create(key, id, { rag_id = text_of(job.rag_id), filename = text_of(job.filename), status = 'processing',
      submitted_at = text_of(job.submitted_at), retry_count = spent, max_retries = most, line = line, token = token, worker = worker, is_known = status })
  else
    call('HSET', key, 'status', 'processing', 'started_at', today, 'lease_token', int(token),
      'worker_id', worker, 'list', line)
  end
  local count = #leases
  leases[count + 1], leases[count + 2] = lease_until, id
  messages[count + 1], messages[count + 2] = id, text
  local at = count * 3
  claims[at + 1], claims[at + 2], claims[at + 3] = id, token, spent + 1
  claims[at + 4], claims[at + 5], claims[at + 6] = math.max(most, spent + 1), line, text
end

-- What is dropped or buried is made up for, but not for ever: a script holds up the whole server.
local budget = wanted + 200
while #leases / 2 < wanted and budget > 0 do
  local order, texts = take(math.min(budget, wanted - #leases / 2))
  if #order == 0 then break end
  budget = budget - #order
  for i, text in ipairs(texts) do
    local job, reason = decoded(text)
    if job then claim(text, order[i], job) else bury(text, order[i], reason) end
  end
end

local has_more = 0
for _, one in ipairs(waiting) do
  turns[#turns + 1] = one.line
  turns[#turns + 1] = (one.left > 0 and '+' or '') .. int(one.tag)
  if one.left > 0 then has_more = 1 end
end
if #turns > 0 then call('HSET', TURNS, ' now', int(clock), unpack(turns)) end
if #leases > 0 then
  call('ZADD', LEASES, unpack(leases))
  call('HSET', worker_key(worker), unpack(messages))
end
return { call('SISMEMBER', LEDGERS, ARGV[6]), has_more, buried, claims }`,
);

/**
 * ARGV: now, "1" when an earlier try may have succeeded unseen, then for each claim: outcome, job, token, and unless it is
 * plainly "done", delay in ms and the reason, or for "done with" a JSON object of fields. Returns a verdict for each.
 */
export const SETTLE = defineScript(
  "settle",
  "allow-oom",
  `${COMMON}${MOVES}
local is_repeat = ARGV[2] == '1'
local verdicts = {}
-- Settled together by one worker, mostly: its own keys are written once.
local ended, ended_by = {}, {}

local function complete(key, id, token, worker, fields)
  if fields then
    local named = {}
    for name, value in pairs(cjson.decode(fields)) do
      named[#named + 1] = name
      named[#named + 1] = type(value) == 'number' and int(value) or value
    end
    if #named > 0 then call('HSET', key, unpack(named)) end
  end
  call('HSET', key, 'status', 'done', 'completed_at', today, 'duration_seconds', seconds_since(token))
  forget_later(key)
  ended[#ended + 1] = id
  local by = ended_by[worker] or {}
  by[#by + 1] = id
  ended_by[worker] = by
end

local i = 3
while i <= #ARGV do
  local outcome, id, token = ARGV[i], ARGV[i + 1], ARGV[i + 2]
  local delay_ms, detail
  if outcome == 'done' then i = i + 3 else
    delay_ms, detail = tonumber(ARGV[i + 3]), ARGV[i + 4]
    i = i + 5
    if outcome == 'done with' then outcome = 'done' end
  end
  local key = job_key(id)
  local found = read_at(key, 'status', 'lease_token', 'worker_id', 'error', 'error_type')
  local status = found[1]
  if not is_held(id, { status = status, token = found[2] }, token) then
    local is_ours = is_repeat and found[2] == token and (outcome ~= 'done' or status == 'done')
    if not is_ours then verdicts[#verdicts + 1] = 'lost'
    elseif outcome == 'retry' then verdicts[#verdicts + 1] = status == 'failed' and 'failed' or 'retrying'
    else verdicts[#verdicts + 1] = outcome end
  elseif outcome == 'done' then
    -- An earlier try may have failed; that is over.
    if (found[4] or '') ~= '' or (found[5] or '') ~= '' then
      call('HDEL', key, 'suggestions', 'traceback', 'error_code')
      call('HSET', key, 'error', '', 'error_type', '')
    end
    complete(key, id, token, found[3] or '', detail)
    verdicts[#verdicts + 1] = 'done'
  else
    local more = call('HMGET', key, 'retry_count', 'max_retries', 'list')
    local held = { worker = found[3], token = token, retry_count = more[1], max_retries = more[2], line = more[3] or '',
      text = call('HGET', worker_key(found[3]), id) or '' }
    if outcome == 'released' then
      call('ZREM', LEASES, id)
      call('HDEL', worker_key(held.worker), id)
      call('HSET', key, 'status', 'queued', 'started_at', '', 'worker_id', '')
      put_back(id, held.line, held.text, delay_ms)
      verdicts[#verdicts + 1] = 'released'
    else
      local is_failed = fail(id, held, { is_fatal = outcome == 'failed', reason = detail, delay_ms = delay_ms, token = tonumber(token) })
      verdicts[#verdicts + 1] = is_failed and 'failed' or 'retrying'
    end
  end
end
if #ended > 0 then
  call('ZREM', LEASES, unpack(ended))
  for worker, ids in pairs(ended_by) do call('HDEL', worker_key(worker), unpack(ids)) end
end
return verdicts`,
);

/** ARGV: now, lease in ms, then jobs and tokens. Returns the jobs that are still held. Without a lease it only looks. */
const HELD = `${COMMON}
local lease_ms = tonumber(ARGV[2])
local kept = {}
for i = 3, #ARGV, 2 do
  local id, token = ARGV[i], ARGV[i + 1]
  local found = look(id, 'status', 'lease_token')
  if is_held(id, { status = found[1], token = found[2] }, token) then
    if lease_ms > 0 then
      call('ZADD', LEASES, int(now + lease_ms), id)
      if found[1] ~= 'processing' then call('HSET', job_key(id), 'status', 'processing') end
    end
    kept[#kept + 1] = id
  end
end
return kept`;
export const EXTEND = defineScript("extend", "allow-oom", HELD);
export const LOOK = defineScript("look", "no-writes", HELD);

/** ARGV: now, how many. Returns for each job: its id, the token it had, the attempt, whether it failed, and the reason. */
export const RESCUE = defineScript(
  "rescue",
  "allow-oom",
  `${COMMON}${MOVES}
local rescued = {}
for _, id in ipairs(call('ZRANGE', LEASES, '-inf', '(' .. int(now), 'BYSCORE', 'LIMIT', 0, tonumber(ARGV[2]))) do
  local found = read(id, 'status', 'lease_token', 'worker_id', 'retry_count', 'max_retries', 'list')
  local text = found[3] and call('HGET', worker_key(found[3]), id)
  local is_over = found[1] == 'done' or found[1] == 'failed'
  if is_over or not text then
    -- As above.
    call('ZREM', LEASES, id)
    if not is_over then call('DEL', job_key(id)) end
  else
    local attempt = (tonumber(found[4]) or 0) + 1
    local most = math.max(tonumber(found[5]) or 3, attempt)
    local reason = 'worker ' .. found[3] .. ' stopped renewing its lease (attempt ' .. attempt .. ' of ' .. most .. ')'
    local token = tonumber(found[2])
    -- A new token, so that the worker, should it come back, does not take this for its own settlement.
    local is_failed = fail(id, { worker = found[3], token = token, retry_count = found[4], max_retries = found[5],
      line = found[6], text = text }, { reason = reason, delay_ms = 0, token = token + 1 })
    for _, value in ipairs({ id, int(token), int(attempt), is_failed and '1' or '', reason }) do
      rescued[#rescued + 1] = value
    end
  end
end
return rescued`,
);

/** ARGV: now, then workers. Their leases are over, whatever they said. Returns how many. */
export const EXPIRE = defineScript(
  "expire",
  "allow-oom",
  `${COMMON}
local count = 0
for i = 2, #ARGV do
  call('ZREM', WORKERS, ARGV[i])
  for _, id in ipairs(call('HKEYS', worker_key(ARGV[i]))) do
    call('ZADD', LEASES, 'XX', 0, id)
    count = count + 1
  end
end
return count`,
);

/** ARGV: now, worker, then the jobs that it knows to have. Others, of claims whose answer was lost, go back untouched. */
export const GIVE_BACK = defineScript(
  "give back",
  "allow-oom",
  `${COMMON}${MOVES}
local key, known = worker_key(ARGV[2]), {}
for i = 3, #ARGV do known[ARGV[i]] = true end
for _, id in ipairs(call('HKEYS', key)) do
  if not known[id] then
    local found = read(id, 'worker_id', 'list')
    local text = call('HGET', key, id)
    call('HDEL', key, id)
    if found[1] == ARGV[2] and is_leased(id) then
      call('ZREM', LEASES, id)
      call('HSET', job_key(id), 'status', 'queued', 'started_at', '', 'worker_id', '')
      put_back(id, found[2] or '', text, 0)
    end
  end
end
return 1`,
);

/** ARGV: now, how many. */
export const PROMOTE = defineScript(
  "promote",
  "allow-oom",
  `${COMMON}${MOVES}
local due = call('ZRANGE', DELAYED, '-inf', int(now), 'BYSCORE', 'LIMIT', 0, tonumber(ARGV[2]))
for _, id in ipairs(due) do
  local text = call('HGET', DELAYED_MESSAGES, id)
  call('ZREM', DELAYED, id)
  call('HDEL', DELAYED_MESSAGES, id)
  if text then put_back(id, read(id, 'list')[1] or '', text, 0) end
end
return #due`,
);

/** ARGV: now. Milliseconds until the next delayed job is due, or nothing. */
export const NEXT_DUE = defineScript(
  "next due",
  "no-writes",
  `${COMMON}
local first = call('ZRANGE', DELAYED, 0, 0, 'WITHSCORES')
if not first[2] then return nil end
return int(math.max(0, first[2] - now))`,
);

/**
 * ARGV: now, "submit" or "restore", then for each job: id, message, list, rag_id, filename, submitted_at, retry_count,
 * max_retries, delay in ms. Puts those into line that are not there, and returns what each was before, or "".
 */
export const ENTER = defineScript(
  "enter",
  "",
  `${COMMON}${MOVES}
local is_restore = ARGV[2] == 'restore'
local before = {}
-- A job that says that it waits while its list is empty, or that it runs without a lease, is nowhere.
local function is_nowhere(id, status, line)
  if status == 'done' or status == 'failed' or is_leased(id) then return false end
  if status == 'processing' then return true end
  return call('LLEN', list_key(line or '')) == 0 and not call('ZSCORE', DELAYED, id)
end
for i = 3, #ARGV, 9 do
  local id, text, line = ARGV[i], ARGV[i + 1], ARGV[i + 2]
  local found = read(id, 'status', 'lease_token', 'list')
  local status = found[1] or ''
  local is_gone = status == '' or is_nowhere(id, status, found[3])
  if is_gone or (not is_restore and (status == 'failed' or status == 'submitted')) then
    create(job_key(id), id, { rag_id = ARGV[i + 3], filename = ARGV[i + 4], status = 'queued', submitted_at = ARGV[i + 5],
      retry_count = tonumber(ARGV[i + 6]), max_retries = tonumber(ARGV[i + 7]), line = line,
      token = tonumber(found[2]) or 0, is_known = status ~= '' })
    local delay_ms = tonumber(ARGV[i + 8])
    if delay_ms > 0 then put_back(id, line, text, delay_ms) else call('LPUSH', list_key(line), text) end
    before[#before + 1] = ''
  else
    before[#before + 1] = status
  end
end
return before`,
);

/** ARGV: now, the name of a pass, ledger. The ledger is known if Redis was not emptied since the pass began. */
export const CONFIRM = defineScript(
  "confirm",
  "",
  `${COMMON}
if call('SREM', LEDGERS, ARGV[2]) == 0 then return 0 end
call('SADD', LEDGERS, ARGV[3])
return 1`,
);

/** ARGV: now, job, token, then names and values. */
export const REPORT = defineScript(
  "report",
  "allow-oom",
  `${COMMON}
local id = ARGV[2]
local found = look(id, 'status', 'lease_token')
if not is_held(id, { status = found[1], token = found[2] }, ARGV[3]) then return 0 end
call('HSET', job_key(id), 'status', 'processing', unpack(ARGV, 4))
return 1`,
);

/** ARGV: now, then lists. Waiting, in hands, delayed, dead, the oldest letter, and the silence of the last worker in ms. */
export const COUNT = defineScript(
  "count",
  "no-writes",
  `${COMMON}
local waiting = 0
for i = 2, #ARGV do waiting = waiting + call('LLEN', list_key(ARGV[i])) end
local heard = call('ZRANGE', WORKERS, 0, 0, 'REV', 'WITHSCORES')
return { waiting, call('ZCARD', LEASES), call('ZCARD', DELAYED), call('LLEN', DEAD),
  call('LINDEX', DEAD, -1) or '', heard[2] and int(math.max(0, now - heard[2])) or '' }`,
);

/** ARGV: now, worker. Who was silent for a day is forgotten. */
export const BEAT = defineScript(
  "beat",
  "allow-oom",
  `${COMMON}
call('ZADD', WORKERS, int(now), ARGV[2])
call('ZREMRANGEBYSCORE', WORKERS, '-inf', int(now - 86400000))
return 1`,
);
