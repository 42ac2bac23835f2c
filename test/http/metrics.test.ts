import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { HttpMetrics, prometheusText } from "../../src/http/metrics.ts";
import { serveForTest } from "./serving.ts";

interface Sample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

const LINE = /^([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (NaN|[+-]Inf|[-+\d.eE]+)$/;
const LABEL = /([a-zA-Z_]\w*)="((?:[^"\\\n]|\\["\\n])*)"(?:,|$)/g;

/** As the text format is described: every sample belongs to a metric that was announced before it. */
function parsed(text: string): { samples: Sample[]; types: Map<string, string> } {
  assert.ok(text.endsWith("\n"));
  const types = new Map<string, string>();
  const samples: Sample[] = [];
  for (const line of text.trimEnd().split("\n")) {
    const [, named, type] = /^# TYPE (\S+) (counter|gauge|histogram)$/.exec(line) ?? [];
    if (named !== undefined) {
      assert.ok(!types.has(named), `${named} is announced twice`);
      types.set(named, type!);
      continue;
    }
    if (/^# HELP \S+ .+$/.test(line)) continue;
    const [, name = "", labels = "", value = ""] = LINE.exec(line) ?? assert.fail(`not a sample: ${line}`);
    const found = [...labels.matchAll(LABEL)];
    assert.equal(found.map(([whole]) => whole).join(""), labels, line);
    const family = types.has(name) ? name : name.replace(/_(bucket|sum|count)$/, "");
    assert.ok(types.has(family), `${name} was not announced`);
    samples.push({
      name,
      labels: Object.fromEntries(found.map(([, key, text]) => [key!, text!])),
      value: Number(value.replace("Inf", "Infinity")),
    });
  }
  const keys = samples.map(({ name, labels }) => JSON.stringify([name, labels]));
  assert.equal(new Set(keys).size, keys.length, "a series stands there twice");
  return { samples, types };
}

describe("metrics", () => {
  it("tell rows, workers, requests and the process, in the text format", async () => {
    const serving = await serveForTest();
    for (const path of ["/health", "/health", "/nothing/1", "/nothing/2", "/documents/1?secret=1", "/lanes"])
      await serving.ask(path);
    await serving.ask("/lanes/chunks.vector/resume", { method: "POST" });
    const answer = await serving.ask("/metrics");
    assert.equal(answer.headers.get("content-type"), "text/plain; version=0.0.4; charset=utf-8");
    const text = await answer.text();
    const { samples, types } = parsed(text);
    const figure = (name: string, labels: Record<string, string> = {}) =>
      samples.find(
        (sample) =>
          sample.name === name &&
          Object.entries(labels).every(([key, value]) => sample.labels[key] === value),
      )?.value;
    const requests = "quarry_http_requests_total";
    assert.equal(figure(requests, { method: "GET", route: "/health", status: "2xx" }), 2);
    assert.equal(figure(requests, { route: "unmatched", status: "4xx" }), 2);
    assert.equal(figure(requests, { route: "/documents/{id}", status: "4xx" }), 1);
    assert.equal(figure(requests, { method: "POST", route: "/lanes/{name}/resume", status: "2xx" }), 1);
    assert.equal(figure("quarry_workers"), 0);
    assert.equal(figure("quarry_database_up"), 1);
    for (const name of [
      "process_resident_memory_bytes",
      "process_uptime_seconds",
      "process_cpu_seconds_total",
    ])
      assert.ok(figure(name)! > 0, name);
    assert.ok(figure("quarry_event_loop_lag_seconds")! >= 0);
    assert.equal(types.get("quarry_tasks"), "gauge");
    assert.doesNotMatch(text, /secret|nothing/);
    await serving.close();
  });

  it("rows are counted by queue and status", async () => {
    const serving = await serveForTest();
    const { writeFile } = await import("node:fs/promises");
    await writeFile(`${serving.folder}/note.txt`, "A note about glaciers.");
    await serving.quarry.documents.add({ path: `${serving.folder}/note.txt` });
    const { samples } = parsed(await (await serving.ask("/metrics")).text());
    const split = samples.filter(
      ({ name, labels }) => name === "quarry_tasks" && labels.queue === "documents.split",
    );
    assert.deepEqual(
      split.map(({ labels, value }) => [labels.status, value]),
      [["pending", 1]],
    );
    await serving.close();
  });

  it("a histogram only rises, and its last bucket is its count", () => {
    const metrics = new HttpMetrics();
    for (const tookMs of [1, 6, 40, 900, 120_000])
      metrics.count({ method: "GET", route: "/x", status: 200, tookMs });
    const { samples } = parsed(prometheusText(metrics.metrics()));
    const buckets = samples.filter(({ name }) => name.endsWith("_bucket")).map(({ value }) => value);
    assert.deepEqual(
      buckets,
      buckets.toSorted((a, b) => a - b),
    );
    assert.equal(buckets.at(-1), 5);
    assert.equal(samples.find(({ name }) => name.endsWith("_count"))?.value, 5);
  });

  it("values of labels are escaped, and unknown methods are one", () => {
    const metrics = new HttpMetrics();
    metrics.count({ method: "BREW", route: 'a"b\\c\nd', status: 405, tookMs: 1 });
    const { samples } = parsed(prometheusText(metrics.metrics()));
    assert.deepEqual(samples[0]!.labels, { method: "other", route: 'a\\"b\\\\c\\nd', status: "4xx" });
  });
});
