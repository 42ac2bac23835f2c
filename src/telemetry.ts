import { messageOf } from "./errors.ts";

export type Attributes = Record<string, string | number | boolean>;

/** What the engine tells an observer. `openTelemetry` makes one of an OpenTelemetry tracer and meter. */
export interface Telemetry {
  span<T>(name: string, attributes: Attributes, work: () => Promise<T>): Promise<T>;
  count(name: string, value: number, attributes: Attributes): void;
}

interface SpanLike {
  setStatus(status: { code: number; message?: string }): unknown;
  recordException(error: Error): void;
  end(): void;
}

/** The parts of OpenTelemetry's API that are used, so that it need not be installed. */
export interface TracerLike {
  startActiveSpan<T>(name: string, options: { attributes: Attributes }, work: (span: SpanLike) => T): T;
}

export interface MeterLike {
  createCounter(name: string): { add(value: number, attributes: Attributes): void };
}

const STATUS_ERROR = 2;

export function openTelemetry(options: { tracer: TracerLike; meter?: MeterLike }): Telemetry {
  const counters = new Map<string, ReturnType<MeterLike["createCounter"]>>();
  return {
    span: (name, attributes, work) =>
      options.tracer.startActiveSpan(name, { attributes }, async (span) => {
        try {
          return await work();
        } catch (error) {
          span.recordException(error instanceof Error ? error : new Error(String(error)));
          span.setStatus({ code: STATUS_ERROR, message: messageOf(error) });
          throw error;
        } finally {
          span.end();
        }
      }),
    count: (name, value, attributes) => {
      if (!options.meter) return;
      const counter = counters.get(name) ?? options.meter.createCounter(name);
      counters.set(name, counter);
      counter.add(value, attributes);
    },
  };
}

/** Methods that answer at once: nothing is asked of a store. */
const AT_ONCE: ReadonlySet<string | symbol> = new Set(["within", "subscribe"]);

/** Wraps every method of `target` in a span named `prefix.method`. */
export function observed<T extends object>(
  target: T,
  options: { prefix: string; attributes: Attributes; telemetry: Telemetry | undefined },
): T {
  const { prefix, attributes, telemetry } = options;
  if (!telemetry) return target;
  return new Proxy(target, {
    get: (object, name) => {
      const value = Reflect.get(object, name, object);
      if (typeof value !== "function" || AT_ONCE.has(name)) return value;
      return (...args: unknown[]) =>
        telemetry.span(`${prefix}.${String(name)}`, attributes, async () => value.apply(object, args));
    },
  });
}
