import fc from "fast-check";

/** The part of JSON Schema that our OpenAPI document uses. */
export interface Schema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly anyOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
  readonly allOf?: readonly Schema[];
  readonly format?: string;
  readonly pattern?: string;
  readonly example?: unknown;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly items?: Schema;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: boolean | Schema;
}

/** Stands for something that an earlier answer named: which one, and in which field it stands now. */
export const SEEN = /^seen:(\d+):(\w+)$/;
export const isNaming = (name: string) => /id$|name$|^source_path$/i.test(name);
const seen = (name: string) => fc.nat(1_000).map((number) => `seen:${number}:${name}`);
const LENGTH_SPARE = 40;
const ITEMS_SPARE = 4;
const DEFAULT_MAX = 1_000_000;

/** Values that a schema allows. `resolve` finds what a reference means. */
export function valuesOf(schema: Schema, resolve: (ref: string) => Schema, name = ""): fc.Arbitrary<unknown> {
  const among = (schemas: readonly Schema[]) =>
    fc.oneof(...schemas.map((each) => valuesOf(each, resolve, name)));
  if (schema.$ref !== undefined) return valuesOf(resolve(schema.$ref), resolve, name);
  if (schema.const !== undefined) return fc.constant(schema.const);
  if (schema.enum) return fc.constantFrom(...schema.enum);
  if (schema.anyOf ?? schema.oneOf) return among((schema.anyOf ?? schema.oneOf)!);
  if (schema.allOf)
    return fc
      .tuple(...schema.allOf.map((each) => valuesOf(each, resolve, name)))
      .map((parts) => Object.assign({}, ...parts));
  if (Array.isArray(schema.type)) return among(schema.type.map((type) => ({ ...schema, type })));
  switch (schema.type) {
    case "string":
      return texts(schema, name);
    case "integer":
    case "number":
      return numbers(schema, name);
    case "boolean":
      return fc.boolean();
    case "null":
      return fc.constant(null);
    case "array": {
      const minLength = schema.minItems ?? 0;
      const maxLength = Math.min(schema.maxItems ?? DEFAULT_MAX, minLength + ITEMS_SPARE);
      return fc.array(valuesOf(schema.items ?? {}, resolve, name), { minLength, maxLength });
    }
    case "object":
      return objects(schema, resolve);
    default:
      return fc.jsonValue({ maxDepth: 3 });
  }
}

function texts(schema: Schema, name: string): fc.Arbitrary<string> {
  const minLength = schema.minLength ?? 0;
  const maxLength = Math.min(schema.maxLength ?? DEFAULT_MAX, minLength + LENGTH_SPARE);
  const plain =
    schema.format === "uuid"
      ? fc.uuid()
      : schema.pattern === undefined
        ? fc.string({ minLength, maxLength, unit: "grapheme" })
        : fc.stringMatching(new RegExp(schema.pattern, "u"), { maxLength: minLength + LENGTH_SPARE });
  const examples = typeof schema.example === "string" ? [fc.constant(schema.example)] : [];
  return fc.oneof(plain, ...examples, ...(isNaming(name) ? [seen(name)] : []));
}

function numbers({ type, minimum, maximum }: Schema, name: string): fc.Arbitrary<number> {
  const min = minimum ?? -DEFAULT_MAX;
  // Waiting is the one thing that there is no time for here.
  const max = name.startsWith("wait") ? min : Math.min(maximum ?? DEFAULT_MAX, Number.MAX_SAFE_INTEGER);
  return type === "integer"
    ? fc.integer({ min: Math.ceil(min), max: Math.floor(max) })
    : fc.double({ min, max, noNaN: true });
}

function objects(schema: Schema, resolve: (ref: string) => Schema): fc.Arbitrary<object> {
  const fields = Object.entries(schema.properties ?? {}).map(
    ([name, field]) => [name, valuesOf(field, resolve, name)] as const,
  );
  const required = [...(schema.required ?? [])];
  const needed = fields.filter(([name]) => required.includes(name));
  // With every field there at random, those with many would hardly ever be right.
  const known = fc.oneof(
    fc.record(Object.fromEntries(fields), { requiredKeys: required as never[] }),
    fc.record(Object.fromEntries(needed)),
  );
  const { additionalProperties: more = false } = schema;
  if (more === false) return known;
  const others = fc.dictionary(
    fc.string({ minLength: 1, maxLength: 20 }),
    valuesOf(more === true ? {} : more, resolve),
    {
      maxKeys: ITEMS_SPARE,
    },
  );
  return fc.tuple(others, known).map(([a, b]) => ({ ...a, ...b }));
}

/** Values that hardly any schema allows. */
export const strange: fc.Arbitrary<unknown> = fc.oneof(
  fc.jsonValue({ maxDepth: 3 }),
  fc.string({ unit: "binary", maxLength: 30 }),
  fc.constantFrom<unknown>(
    ...[
      "",
      " ",
      "\0",
      "a\0b",
      "\ud800",
      "null",
      "undefined",
      "NaN",
      "-1",
      "1e999",
      "true",
      "%00",
      "..",
      "\u202e",
    ],
    ...[
      "' or 1=1 --",
      "{{7*7}}",
      "<script>alert(1)</script>",
      "../../etc/passwd",
      "__proto__",
      "constructor",
    ],
    ...[-1, 0.5, 2 ** 53, -(2 ** 53), 1e308, 2 ** 31, 2 ** 63],
    "x".repeat(3_000),
    null,
    [],
    {},
    [[[[[[[[[[]]]]]]]]]],
    JSON.parse('{"__proto__":{"isAdmin":true}}'),
  ),
);
