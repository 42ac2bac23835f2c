import type { Session } from "../../database/database.ts";
import type { Codec } from "./codes.ts";

/** Points of one tenant and collection whose codes lie side by side, so that a search reads few rows. */
const BLOCK_POINTS_MAX = 256;
const ID_BYTES = 4;

export interface Scope {
  readonly tenant: string;
  readonly collection: string;
}

export interface Place {
  readonly block: number;
  readonly slot: number;
}

interface Block extends Scope {
  readonly id: number;
  /** 0 where a point was taken out; the next one goes there. */
  readonly ids: Uint32Array;
  readonly codes: Uint8Array;
  /** How many slots were ever used. */
  slots: number;
  used: number;
}

/** ?1 tenant, ?2 collection, ?3 blocks already at hand: the file does not know yet that they were filled. */
const OPEN = {
  name: "index.open_block",
  sql: `select id, tenant, collection, ids, codes, used from vector_blocks where tenant = ?1 and collection = ?2 and used < ${BLOCK_POINTS_MAX} and id not in (select value from json_each(?3)) limit 1`,
};
const GET = {
  name: "index.block",
  sql: "select id, tenant, collection, ids, codes, used from vector_blocks where id = ?1",
};
const CREATE = {
  name: "index.create_block",
  sql: "insert into vector_blocks (tenant, collection, used, ids, codes) values (?1, ?2, 0, x'', x'') returning id",
};
const WRITE = {
  name: "index.write_block",
  sql: "update vector_blocks set used = ?2, ids = ?3, codes = ?4 where id = ?1",
};
const DELETE = { name: "index.delete_block", sql: "delete from vector_blocks where id = ?1" };

/** The blocks that one transaction changes: each is read once and written once. */
export class Blocks {
  readonly #session: Session;
  readonly #codec: Codec;
  readonly #blocks = new Map<number, Block>();

  constructor(session: Session, codec: Codec) {
    this.#session = session;
    this.#codec = codec;
  }

  /** Puts a point where there is room in a block of its scope. */
  async add(scope: Scope, id: number, vector: Float32Array): Promise<Place> {
    const block = this.#openBlock(scope) ?? (await this.#readOpenBlock(scope)) ?? (await this.#create(scope));
    const hole = block.ids.subarray(0, block.slots).indexOf(0);
    const slot = hole >= 0 ? hole : block.slots++;
    block.ids[slot] = id;
    block.used += 1;
    this.#codec.encode(vector, block.codes, slot * this.#codec.bytes);
    return { block: block.id, slot };
  }

  async replace(place: Place, vector: Float32Array): Promise<void> {
    const block = await this.#get(place.block);
    this.#codec.encode(vector, block.codes, place.slot * this.#codec.bytes);
  }

  async free(place: Place): Promise<void> {
    const block = await this.#get(place.block);
    block.ids[place.slot] = 0;
    block.used -= 1;
  }

  async write(): Promise<void> {
    for (const block of this.#blocks.values()) {
      if (block.used === 0) await this.#session.query(DELETE, [block.id]);
      else {
        const ids = new Uint8Array(block.ids.buffer, 0, block.slots * ID_BYTES);
        const codes = block.codes.subarray(0, block.slots * this.#codec.bytes);
        await this.#session.query(WRITE, [block.id, block.used, ids, codes]);
      }
    }
  }

  #openBlock({ tenant, collection }: Scope): Block | undefined {
    for (const block of this.#blocks.values()) {
      const isOpen = block.used < BLOCK_POINTS_MAX;
      if (isOpen && block.tenant === tenant && block.collection === collection) return block;
    }
    return undefined;
  }

  async #readOpenBlock({ tenant, collection }: Scope): Promise<Block | undefined> {
    const atHand = JSON.stringify([...this.#blocks.keys()]);
    const [row] = await this.#session.query<StoredBlock>(OPEN, [tenant, collection, atHand]);
    return row && this.#keep(row);
  }

  async #create({ tenant, collection }: Scope): Promise<Block> {
    const [row] = await this.#session.query<{ id: number }>(CREATE, [tenant, collection]);
    const nothing = new Uint8Array();
    return this.#keep({ id: row!.id, tenant, collection, ids: nothing, codes: nothing, used: 0 });
  }

  async #get(id: number): Promise<Block> {
    const known = this.#blocks.get(id);
    if (known) return known;
    const [row] = await this.#session.query<StoredBlock>(GET, [id]);
    return this.#keep(row!);
  }

  #keep(row: StoredBlock): Block {
    const { id, tenant, collection, used } = row;
    const ids = new Uint32Array(BLOCK_POINTS_MAX);
    new Uint8Array(ids.buffer).set(row.ids);
    const codes = new Uint8Array(BLOCK_POINTS_MAX * this.#codec.bytes);
    codes.set(row.codes);
    const block = { id, tenant, collection, ids, codes, slots: row.ids.length / ID_BYTES, used };
    this.#blocks.set(id, block);
    return block;
  }
}

type StoredBlock = {
  id: number;
  tenant: string;
  collection: string;
  ids: Uint8Array;
  codes: Uint8Array;
  used: number;
};

/** Ids as they lie in a block that was read. */
export function idsOf(bytes: Uint8Array): Uint32Array {
  return new Uint32Array(bytes.buffer, bytes.byteOffset, bytes.length / ID_BYTES);
}
