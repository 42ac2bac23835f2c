import { hash, timingSafeEqual } from "node:crypto";
import { QuarryError } from "../errors.ts";

/** read: look; write: change and add; work: take tasks and hand in what came of them. */
export const SCOPES = ["read", "write", "work"] as const;
export type Scope = (typeof SCOPES)[number];

export interface Caller {
  /** Names the key without giving it away, or the address where there are no keys. */
  readonly name: string;
  readonly scopes: ReadonlySet<Scope>;
}

interface Key extends Caller {
  readonly digest: Buffer;
}

const LENGTH_MIN = 16;
const KEY = /^[\x21-\x2b\x2d-\x7e]{16,512}$/;
const ENTRY = /^([a-z+]{1,40})=(.+)$/;
const FINGERPRINT_LENGTH = 8;

/** `KEY` may do everything; `read=KEY1,read+write=KEY2` less. */
export class Keys {
  readonly #keys: readonly Key[];

  constructor(text: string | undefined) {
    this.#keys = text === undefined ? [] : text.split(",").map((entry) => keyOf(entry.trim()));
    if (new Set(this.#keys.map(({ name }) => name)).size < this.#keys.length)
      throw refused("the same key stands in it twice");
  }

  get areWanted(): boolean {
    return this.#keys.length > 0;
  }

  /** Every key is compared, in full: how long it takes says nothing about which one was nearly right. */
  find(presented: string): Caller | undefined {
    const digest = digestOf(presented);
    let found: Caller | undefined;
    for (const key of this.#keys) if (timingSafeEqual(digest, key.digest)) found = key;
    return found;
  }
}

function keyOf(entry: string): Key {
  const [, names, value] = ENTRY.exec(entry) ?? [];
  const key = value ?? entry;
  if (!KEY.test(key))
    throw refused(`a key has ${LENGTH_MIN} to 512 visible ASCII characters and no comma; one has not`);
  const scopes = names === undefined ? SCOPES : names.split("+");
  const unknown = scopes.find((scope) => !(SCOPES as readonly string[]).includes(scope));
  if (unknown !== undefined)
    throw refused(`a key may be for ${SCOPES.join(", ")}; one is for something else`);
  const digest = digestOf(key);
  return {
    name: `key-${digest.toString("hex").slice(0, FINGERPRINT_LENGTH)}`,
    scopes: new Set(scopes as Scope[]),
    digest,
  };
}

function digestOf(text: string): Buffer {
  return hash("sha256", text, "buffer");
}

/** Never quotes the setting: it holds the keys. */
function refused(problem: string): QuarryError {
  return new QuarryError(
    "invalid_input",
    `QUARRY_API_KEY cannot be used: ${problem}. Give KEY, or read=KEY1,read+write=KEY2,work=KEY3`,
  );
}
