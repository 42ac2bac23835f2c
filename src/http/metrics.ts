/** Request metrics of this process, and the text format of Prometheus. */
const BUCKETS_S = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30];
const METHODS = new Set(["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]);

export interface CountedRequest {
  readonly method: string;
  /** The declared path: raw ones would make as many series as there are callers' mistakes. */
  readonly route: string;
  readonly status: number;
  readonly tookMs: number;
}

interface Series {
  readonly labels: Labels;
  count: number;
  sumS: number;
  readonly buckets: number[];
}

export type Labels = Readonly<Record<string, string>>;

export interface Metric {
  readonly name: string;
  readonly help: string;
  readonly type: "counter" | "gauge" | "histogram";
  readonly samples: readonly { readonly suffix?: string; readonly labels?: Labels; readonly value: number }[];
}

export class HttpMetrics {
  readonly #series = new Map<string, Series>();

  count({ method, route, status, tookMs }: CountedRequest): void {
    const labels = {
      method: METHODS.has(method) ? method : "other",
      route,
      status: `${Math.floor(status / 100)}xx`,
    };
    const key = Object.values(labels).join(" ");
    let series = this.#series.get(key);
    if (!series) {
      series = { labels, count: 0, sumS: 0, buckets: BUCKETS_S.map(() => 0) };
      this.#series.set(key, series);
    }
    const tookS = tookMs / 1000;
    series.count += 1;
    series.sumS += tookS;
    for (const [index, limit] of BUCKETS_S.entries()) if (tookS <= limit) series.buckets[index]! += 1;
  }

  metrics(): Metric[] {
    const series = [...this.#series.values()];
    return [
      {
        name: "quarry_http_requests_total",
        help: "Requests answered.",
        type: "counter",
        samples: series.map(({ labels, count }) => ({ labels, value: count })),
      },
      {
        name: "quarry_http_request_duration_seconds",
        help: "How long answers took; for streams, until they began.",
        type: "histogram",
        samples: series.flatMap(({ labels, count, sumS, buckets }) => [
          ...BUCKETS_S.map((limit, index) => ({
            suffix: "_bucket",
            labels: { ...labels, le: String(limit) },
            value: buckets[index]!,
          })),
          { suffix: "_bucket", labels: { ...labels, le: "+Inf" }, value: count },
          { suffix: "_sum", labels, value: sumS },
          { suffix: "_count", labels, value: count },
        ]),
      },
    ];
  }
}

export function prometheusText(metrics: readonly Metric[]): string {
  return metrics
    .flatMap(({ name, help, type, samples }) => [
      `# HELP ${name} ${help}`,
      `# TYPE ${name} ${type}`,
      ...samples.map(
        ({ suffix = "", labels = {}, value }) => `${name}${suffix}${labelText(labels)} ${value}`,
      ),
    ])
    .map((line) => `${line}\n`)
    .join("");
}

function labelText(labels: Labels): string {
  const pairs = Object.entries(labels).map(([name, value]) => `${name}="${escaped(value)}"`);
  return pairs.length === 0 ? "" : `{${pairs.join(",")}}`;
}

function escaped(value: string): string {
  return value.replaceAll("\\", "\\\\").replaceAll('"', '\\"').replaceAll("\n", "\\n");
}
