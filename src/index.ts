export type { Asked, Asks, Question } from "./agents/ask.ts";
export type { Planner, Step, WorkerProgress } from "./agents/planners.ts";
export {
  ENTITY_TYPES,
  type EntityType,
  FUNCTION_TASK_STATUSES,
  type FunctionTaskStatus,
} from "./agents/queue.ts";
export {
  type AgentFunction,
  defineFunction,
  type FunctionResult,
  type FunctionTask,
  type NewTask,
} from "./agents/registry.ts";
export type { Citation } from "./agents/results.ts";
export type { FunctionTaskListOptions, FunctionTaskPage, FunctionTaskRow } from "./agents/task-rows.ts";
export type { Tasks } from "./agents/tasks.ts";
export { type LaneControl, openQuarry, type Quarry, type WorkOptions } from "./app.ts";
export type { AskOptions } from "./asking.ts";
export { type Clock, manualClock, systemClock } from "./clock.ts";
export { type GivenSettings, loadSettings, type SettingSource, type Settings } from "./config.ts";
export type { Database, Row, Session, Statement, Transaction } from "./database/database.ts";
export { type Migration, migrate, readMigrations } from "./database/migrate.ts";
export { type DatabaseSettings, openDatabase } from "./database/open.ts";
export type { Cancelled } from "./documents/changes.ts";
export type { Added, DocumentChange, Documents, NewDocument } from "./documents/documents.ts";
export type { Counts, Progress } from "./documents/progress.ts";
export { PHASES, type Phase, TASK_STATUSES, type TaskStatus } from "./documents/queues.ts";
export {
  DOCUMENT_STATES,
  type DocumentDetails,
  type DocumentFailure,
  type DocumentFilter,
  type DocumentPage,
  type DocumentState,
  type DocumentSummary,
} from "./documents/views.ts";
export type { EmbeddingJob, JobFilter, JobPage } from "./embeddings/job-rows.ts";
export type { EmbeddingJobs, NewJob } from "./embeddings/jobs.ts";
export { JOB_PRIORITIES, JOB_STATUSES, type JobPriority, type JobStatus } from "./embeddings/queue.ts";
export { ERROR_CODES, type ErrorCode, isQuarryError, QuarryError } from "./errors.ts";
export type { Ingested, IngestOptions } from "./ingest/ingest.ts";
export type { Item, ItemFilter, ItemPage } from "./ingest/item-rows.ts";
export type { EnqueuedItem, EnqueueVerdict, Items, NewItem } from "./ingest/items.ts";
export type { ItemsProgress } from "./ingest/items-progress.ts";
export {
  ITEM_STATUSES,
  ITEM_TYPES,
  type ItemStatus,
  type ItemType,
  OPERATIONS,
  type Operation,
  PRIORITIES,
} from "./ingest/queue.ts";
export { createLog, type Log } from "./log.ts";
export { Crew, type CrewSettings } from "./queue/crew.ts";
export {
  defineQueue,
  type Gate,
  type OrderTerm,
  type Queue,
  type QueueColumns,
  type QueueDeclaration,
  type RollUpLevel,
  type StatusWords,
} from "./queue/declaration.ts";
export type { Enqueued, EnqueueOptions } from "./queue/enqueue.ts";
export type { Task } from "./queue/held.ts";
export { indexesOf, type QueueIndex } from "./queue/indexes.ts";
export {
  createJanitor,
  type Janitor,
  type JanitorSettings,
  type Sweep,
  type Tended,
} from "./queue/janitor.ts";
export { defineLane, type LaneDeclaration, type LaneStats } from "./queue/lane.ts";
export type {
  ClaimOptions,
  LaneListeners,
  LaneStore,
  PruneOptions,
  Rescued,
  SettleOptions,
} from "./queue/lane-store.ts";
export type { LaneWait } from "./queue/lane-wait.ts";
export type { ListOptions, QueueFilter, QueuePage } from "./queue/list.ts";
export {
  type Claim,
  done,
  failed,
  type Outcome,
  released,
  retry,
  type Settlement,
  type Verdict,
} from "./queue/outcome.ts";
export { prepareQueue } from "./queue/prepare.ts";
export { exponential, fixedDelays, immediately, type RetryPolicy } from "./queue/retry-policy.ts";
export type { Key } from "./queue/roll-up.ts";
export { type CancelVerdict, openQueue, type QueueStore, type RetryOptions } from "./queue/store.ts";
export { createWorker, type Worker, type WorkerSettings } from "./queue/worker.ts";
export type { WorkerProcess } from "./queue/worker-processes.ts";
export { RAG_ERROR_CODES, RagError, type RagErrorCode } from "./rag/errors.ts";
export type { QueueHealth, RagJobs, SubmitFile, SubmitJob, SubmittedJob } from "./rag/jobs.ts";
export type { JobStatus as RagJobStatus, RagQueue } from "./rag/queue.ts";
export type { Rag, RagSettings, Rags } from "./rag/settings.ts";
export type { Search, SearchAnswer, SearchMode, SearchQuery, SearchResult } from "./search/search.ts";
export { openTelemetry, type Telemetry } from "./telemetry.ts";
