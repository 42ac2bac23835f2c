import type { Database, Session } from "../database/database.ts";
import { quoted } from "../database/dialect.ts";
import type { Queue } from "../queue/declaration.ts";
import { predicatesOf } from "../queue/predicates.ts";

/** Where an item stands in line. */
export interface Line {
  readonly tenant: string;
  readonly priority: number;
  /** The machine it is for; '' is any. */
  readonly seenOn: string;
}

/**
 * Tenants take turns among items of one priority. An item's tag is its place in line: one more than its tenant's last
 * one, but never before the line's own head. Whoever brings 100,000 items stands in line 100,000 places long; whoever
 * brings one stands at the head. Items for one machine stand in line with those for any.
 */
export class FairTags {
  readonly #next = new Map<string, number>();
  readonly #read: (line: Line) => Promise<number>;

  constructor(session: Session, { database, queue }: { database: Database; queue: Queue }) {
    const { mark } = database.dialect;
    const { reserved } = queue;
    const waiting = predicatesOf(queue, "t").ready;
    const headsOf = reserved
      ? [mark(3), "''"].map((taker) => ` and t.${quoted(reserved.column)} = ${taker}`)
      : [""];
    const heads = headsOf.map(
      (isMeant) =>
        `select * from (select t.fair_tag from unified_queue as t where ${waiting}${isMeant} and t.priority = ${mark(2)} order by t.priority desc, t.fair_tag limit 1) as line`,
    );
    const head = `select min(fair_tag) from (${heads.join(" union all ")}) as heads`;
    const served = `select max(fair_tag) from unified_queue where priority = ${mark(2)}`;
    const own = `select max(fair_tag) from unified_queue where tenant_id = ${mark(1)} and priority = ${mark(2)}`;
    const sql = `select coalesce((${head}), (${served}), 0) as head, coalesce((${own}), -1) + 1 as own`;
    this.#read = async ({ tenant, priority, seenOn }) => {
      const params = [tenant, priority, ...(reserved ? [seenOn] : [])];
      const [row] = await session.query({ name: "items.tags", sql }, params);
      return Math.max(Number(row!.head), Number(row!.own));
    };
  }

  async next(line: Line): Promise<number> {
    const { tenant, priority } = line;
    const name = `${priority} ${tenant}`;
    const tag = this.#next.get(name) ?? (await this.#read(line));
    this.#next.set(name, tag + 1);
    return tag;
  }
}
