import type { Database, Session } from "../database/database.ts";
import { QuarryError } from "../errors.ts";
import { uuidv7 } from "../ids.ts";
import type { EntityType } from "./queue.ts";

/** Whom tasks work for: where each kind of entity is kept, under which key, and what says what it is about. */
const TABLES = {
  planner: { table: "planners", key: "planner_id", about: "user_question" },
  worker: { table: "workers", key: "worker_id", about: "task" },
} as const satisfies Record<EntityType, object>;

export interface EntityReference {
  readonly entity_type: EntityType;
  readonly entity_id: string;
}

/** Hexadecimal and in the order they were made, as the ids of tasks are. */
export function newAgentId(database: Database): string {
  return uuidv7(database.clock.now()).replaceAll("-", "");
}

/** An entity for functions of one's own. */
export async function createEntity(
  database: Database,
  { entityType, about }: { entityType: EntityType; about: string },
): Promise<string> {
  const { table, key, about: column } = TABLES[entityType];
  const { mark } = database.dialect;
  const id = newAgentId(database);
  await database.query(`insert into ${table} (${key}, ${column}) values (${mark(1)}, ${mark(2)})`, [
    id,
    about,
  ]);
  return id;
}

/** Says which entity is not there, before the database refuses its task. Those that are there stay until the tasks are. */
export async function checkEntities(
  session: Session,
  { dialect }: Database,
  references: readonly EntityReference[],
): Promise<void> {
  const lock = dialect.name === "postgres" ? " for key share" : "";
  const ids = Map.groupBy(references, ({ entity_type }) => entity_type);
  for (const [type, asked] of ids) {
    const { table, key } = TABLES[type];
    const sql = `select ${key} as id from ${table} where ${dialect.isOneOf(key, 1, "text")}${lock}`;
    const wanted = [...new Set(asked.map(({ entity_id }) => entity_id))];
    const rows = await session.query({ name: `tasks.find.${table}`, sql }, [dialect.keys(wanted)]);
    const found = new Set(rows.map((row) => row.id));
    const missing = wanted.find((id) => !found.has(id));
    if (missing !== undefined)
      throw new QuarryError("not_found", `entity_id: there is no ${type} ${JSON.stringify(missing)}`);
  }
}
