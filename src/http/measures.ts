import { monitorEventLoopDelay } from "node:perf_hooks";
import type { Quarry } from "../app.ts";
import { messageOf } from "../errors.ts";
import type { Api, ApiParts } from "./api.ts";
import { type Metric, prometheusText } from "./metrics.ts";
import { reply, text } from "./route.ts";

const NANOSECONDS = 1e9;

export function addMetricsRoutes(api: Api, { quarry, metrics, log }: ApiParts): void {
  const delay = monitorEventLoopDelay({ resolution: 20 });
  delay.enable();
  let reading: Promise<Metric[]> | undefined;
  /** Counting rows takes a while on large tables: who asks meanwhile shares the answer. */
  const rows = () => {
    reading ??= workMetrics(quarry).finally(() => {
      reading = undefined;
    });
    return reading;
  };
  api.route(
    {
      method: "get",
      path: "/metrics",
      scope: "read",
      tag: "Health",
      summary: "Figures for Prometheus",
      description: "Rows by queue and status, workers, requests, and the process itself.",
      answers: { 200: text("The text format of Prometheus", "text/plain; version=0.0.4; charset=utf-8") },
    },
    async () => {
      const work = await rows().catch((error) => {
        log.warn({ error: messageOf(error) }, "rows could not be counted for /metrics");
        return [];
      });
      const isReachable = gauge(
        "quarry_database_up",
        "Whether the rows could be counted.",
        work.length > 0 ? 1 : 0,
      );
      const lag = gauge("quarry_event_loop_lag_seconds", "Longest delay since the last look.", lagOf(delay));
      delay.reset();
      return reply(
        200,
        prometheusText([isReachable, ...work, ...metrics.metrics(), lag, ...processMetrics()]),
      );
    },
  );
}

async function workMetrics(quarry: Quarry): Promise<Metric[]> {
  const [counts, workers] = await Promise.all([quarry.counts(), quarry.workers()]);
  return [
    {
      name: "quarry_tasks",
      help: "Rows by queue and status.",
      type: "gauge",
      samples: counts.flatMap(({ queue, counts: byStatus }) =>
        Object.entries(byStatus).map(([status, value]) => ({ labels: { queue, status }, value })),
      ),
    },
    gauge("quarry_workers", "Processes that run lanes.", workers.length),
  ];
}

function processMetrics(): Metric[] {
  const { rss, heapUsed, external } = process.memoryUsage();
  const { user, system } = process.cpuUsage();
  return [
    gauge("process_resident_memory_bytes", "Resident memory.", rss),
    gauge("nodejs_heap_size_used_bytes", "Heap in use.", heapUsed),
    gauge("nodejs_external_memory_bytes", "Memory outside the heap.", external),
    {
      ...gauge("process_cpu_seconds_total", "CPU time spent.", (user + system) / 1e6),
      type: "counter",
    },
    gauge("process_uptime_seconds", "Time since the start.", process.uptime()),
  ];
}

/** Nothing measured yet reads as an absurd number. */
function lagOf({ count, max }: { count: number; max: number }): number {
  return count === 0 ? 0 : max / NANOSECONDS;
}

function gauge(name: string, help: string, value: number): Metric {
  return { name, help, type: "gauge", samples: [{ value }] };
}
