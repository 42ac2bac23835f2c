import type { Database, Session } from "../database/database.ts";
import type { Queue } from "../queue/declaration.ts";
import { predicatesOf } from "../queue/predicates.ts";

/**
 * Tenants take turns among items of one priority. An item's tag is its place in line: one more than its tenant's last
 * one, but never before the line's own head. Whoever brings 100,000 items stands in line 100,000 places long; whoever
 * brings one stands at the head.
 */
export class FairTags {
  readonly #next = new Map<string, number>();
  readonly #read: (tenant: string, priority: number) => Promise<number>;

  constructor(session: Session, parts: { database: Database; queue: Queue }) {
    const { mark } = parts.database.dialect;
    const waiting = predicatesOf(parts.queue, "t").ready;
    const head = `select t.fair_tag from unified_queue as t where ${waiting} and t.priority = ${mark(2)} order by t.priority desc, t.fair_tag limit 1`;
    const served = `select max(fair_tag) from unified_queue where priority = ${mark(2)}`;
    const own = `select max(fair_tag) from unified_queue where tenant_id = ${mark(1)} and priority = ${mark(2)}`;
    const sql = `select coalesce((${head}), (${served}), 0) as head, coalesce((${own}), -1) + 1 as own`;
    this.#read = async (tenant, priority) => {
      const [row] = await session.query({ name: "items.tags", sql }, [tenant, priority]);
      return Math.max(Number(row!.head), Number(row!.own));
    };
  }

  async next(tenant: string, priority: number): Promise<number> {
    const line = `${priority} ${tenant}`;
    const tag = this.#next.get(line) ?? (await this.#read(tenant, priority));
    this.#next.set(line, tag + 1);
    return tag;
  }
}
