import { KEPT_MS } from "./queue.ts";
import { KEYS, PREFIX } from "./redis-keys.ts";

/**
 * What every script begins with. Time is the server's, so that no two machines' clocks are ever compared; ARGV[1] is a
 * time only in tests, else empty.
 */
export const COMMON = `
local call, try = redis.call, redis.pcall
local PREFIX, QUEUE, DEAD = '${PREFIX}', '${KEYS.queue}', '${KEYS.deadLetter}'
local LEASES, DELAYED, DELAYED_MESSAGES = '${KEYS.leases}', '${KEYS.delayed}', '${KEYS.delayedMessages}'
local TURNS, WORKERS, LEDGERS = '${KEYS.turns}', '${KEYS.workers}', '${KEYS.ledgers}'
local KEPT_S = ${KEPT_MS / 1_000}

local now = tonumber(ARGV[1])
if not now then
  local time = call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end

-- A batch has few different numbers, and writing one takes longer than looking it up.
local written = {}
local function int(number)
  local text = written[number]
  if not text then
    text = string.format('%.0f', number)
    written[number] = text
  end
  return text
end
local function job_key(id) return PREFIX .. 'job:' .. id end
local function worker_key(worker) return PREFIX .. 'worker:' .. (worker or '') end
local function list_key(line) if line == '' then return QUEUE end return QUEUE .. ':' .. line end
local function is_leased(id) return call('ZSCORE', LEASES, id) ~= false end

-- What is no hash says nothing: anybody may write under these names.
local function look(id, ...)
  local found = try('HMGET', job_key(id), ...)
  return found.err and {} or found
end

-- Token and lease decide, not the word: the contract lets a producer note "submitted" after it has pushed, when the job
-- may be running already.
local function is_held(id, found, token)
  return found.token == token and (found.status == 'processing' or is_leased(id))
end

-- Days to a date, as in Howard Hinnant's chrono-compatible algorithms.
local function iso(ms)
  local s = math.floor(ms / 1000)
  local days = math.floor(s / 86400)
  local z = days + 719468
  local era = math.floor(z / 146097)
  local doe = z - era * 146097
  local yoe = math.floor((doe - math.floor(doe / 1460) + math.floor(doe / 36524) - math.floor(doe / 146096)) / 365)
  local doy = doe - (365 * yoe + math.floor(yoe / 4) - math.floor(yoe / 100))
  local mp = math.floor((5 * doy + 2) / 153)
  local month = mp < 10 and mp + 3 or mp - 9
  local year = yoe + era * 400 + (month <= 2 and 1 or 0)
  local rest = s - days * 86400
  return string.format('%04d-%02d-%02dT%02d:%02d:%02d.%03dZ', year, month, doy - math.floor((153 * mp + 2) / 5) + 1,
    math.floor(rest / 3600), math.floor(rest % 3600 / 60), rest % 60, ms - s * 1000)
end
local today = iso(now)
`;

/** Writing a job's hash, and its ways out of a worker's hands. */
export const MOVES = `
-- A foreign producer may have left something else under the name.
local function read_at(key, ...)
  local found = try('HMGET', key, ...)
  if not found.err then return found end
  call('DEL', key)
  return {}
end
local function read(id, ...) return read_at(job_key(id), ...) end

local function level_of(line) if line == 'high' or line == 'low' then return line end return 'normal' end

-- Everything that the contract names, whatever was there before; first what is looked up most, for a small hash is read
-- from its start. What a new one does not have is empty, and a list that it does not name is the plain one.
local function create(key, id, job)
  if job.is_known then
    call('PERSIST', key)
    call('DEL', key .. ':ttl')
    call('HDEL', key, 'failed_at', 'error_code', 'suggestions', 'traceback', 'priority', 'list')
  end
  call('HSET', key, 'status', job.status, 'lease_token', int(job.token), 'worker_id', job.worker or '',
    'error', '', 'error_type', '', 'completed_at', '', 'duration_seconds', '',
    'retry_count', int(job.retry_count), 'max_retries', int(job.max_retries),
    'job_id', id, 'rag_id', job.rag_id, 'filename', job.filename, 'submitted_at', job.submitted_at,
    'started_at', job.worker and today or '', 'chunks_created', '0', 'embeddings_generated', '0', 'tokens_used', '0')
  if job.line ~= '' then call('HSET', key, 'list', job.line, 'priority', level_of(job.line)) end
end

-- Taken from the right: what comes back goes before what waits.
local function put_back(id, line, text, delay_ms)
  if text == '' then
    -- Somebody has deleted it. The ledger still has the message, and sees that the job is gone.
    call('DEL', job_key(id))
  elseif delay_ms > 0 then
    call('ZADD', DELAYED, int(now + delay_ms), id)
    call('HSET', DELAYED_MESSAGES, id, text)
  else
    call('RPUSH', list_key(line), text)
  end
end

-- As a time and not as an age: that is how Redis writes it down, and it need not be worked out for every key. Only the
-- server's own clock will do.
local forgotten_at, forgotten_ms
local function forget_later(key)
  if not forgotten_at then
    local time = call('TIME')
    forgotten_at, forgotten_ms = iso(now + KEPT_S * 1000), int((time[1] + KEPT_S) * 1000 + math.floor(time[2] / 1000))
  end
  call('PEXPIREAT', key, forgotten_ms)
  call('SET', key .. ':ttl', forgotten_at, 'PXAT', forgotten_ms)
end

-- A token is the time of its claim, unless there were two in one millisecond.
local function seconds_since(token)
  return int(math.max(0, math.floor((now - tonumber(token)) / 1000 + 0.5)))
end

-- After a failure: back into line while the contract's rule allows it, else to the dead letters.
local function fail(id, held, options)
  local key = job_key(id)
  local spent = (tonumber(held.retry_count) or 0) + 1
  local is_over = options.is_fatal or spent >= (tonumber(held.max_retries) or 3)
  call('ZREM', LEASES, id)
  call('HDEL', worker_key(held.worker), id)
  if not is_over then
    call('HSET', key, 'status', 'queued', 'error', options.reason, 'retry_count', int(spent),
      'lease_token', int(options.token), 'worker_id', '')
    put_back(id, held.line or '', held.text, options.delay_ms)
    return false
  end
  call('HSET', key, 'status', 'failed', 'failed_at', today, 'duration_seconds', seconds_since(held.token),
    'error', options.reason, 'retry_count', int(spent), 'lease_token', int(options.token))
  forget_later(key)
  local more = call('HMGET', key, 'rag_id', 'error_type', 'error_code')
  call('LPUSH', DEAD, cjson.encode({ id = id, job_id = id, rag_id = more[1] or '', reason = options.reason,
    error_type = more[2] or '', error_code = more[3] or '', failed_at = today, list = held.line or '',
    message = held.text }))
  return true
end
`;
