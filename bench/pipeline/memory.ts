import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { compareTimes, type Figure } from "../figures.ts";
import { progress } from "../progress.ts";
import { writeLongPdf } from "./long-pdf.ts";
import type { Scene } from "./scene.ts";

const LOOK_EVERY_MS = 50;

/** What Quarry consists of: the process with database, index and queue, and those that read files and embed. */
const ROLES = { process: "the process", extract: "a reader of files", embed: "an embedder" } as const;
type Role = keyof typeof ROLES;
/** In MB, the largest of each role. */
type Peaks = Record<Role, number>;

/** The largest resident memory while a long document becomes searchable, beside that of one a tenth as long. */
export async function memoryOfLongDocuments({ folder, scale }: Scene): Promise<Figure[]> {
  if (!existsSync("/proc/self/status")) {
    progress("only Linux tells the memory of other processes");
    return [];
  }
  const [few, many] = scale.pagesInMemory;
  const small = await peaksOf(folder, few);
  const large = await peaksOf(folder, many);
  return (Object.keys(ROLES) as Role[]).map((role) =>
    compareTimes({
      measure: `PDF of ${many} pages, peak memory of ${ROLES[role]}`,
      unit: "MB",
      quarry: large[role],
      peer: `quarry, ${few} pages`,
      peerValue: small[role],
      goal: null,
    }),
  );
}

async function peaksOf(folder: string, pages: number): Promise<Peaks> {
  const place = join(folder, `memory-${pages}`);
  const path = join(folder, `memory-${pages}.pdf`);
  await writeLongPdf(path, { pages, seed: pages });
  const child = fork(new URL("./memory-process.ts", import.meta.url), [place, path]);
  const peaks: Peaks = { process: 0, extract: 0, embed: 0 };
  const timer = setInterval(() => look(child, peaks), LOOK_EVERY_MS);
  const [code] = await once(child, "exit");
  clearInterval(timer);
  if (code !== 0) throw new Error(`the process that takes ${pages} pages ended with ${code}`);
  const seen = Object.entries(peaks).map(([role, mb]) => `${role} ${Math.round(mb)} MB`);
  progress(`${pages} pages: ${seen.join(", ")}`);
  return peaks;
}

function look(child: ChildProcess, peaks: Peaks): void {
  peaks.process = Math.max(peaks.process, peakMbOf(child.pid!));
  for (const pid of childrenOf(child.pid!)) {
    const role = roleOf(pid);
    if (role) peaks[role] = Math.max(peaks[role], peakMbOf(pid));
  }
}

/** An isolate is known by the folder of its module. */
function roleOf(pid: number): Role | undefined {
  const folder = /adapters\/(\w+)\//.exec(textOf(`/proc/${pid}/cmdline`))?.[1];
  return folder === "extract" || folder === "embed" ? folder : undefined;
}

/** Linux keeps the peak itself; 0 when the process is gone. */
function peakMbOf(pid: number): number {
  const [, kb] = /VmHWM:\s+(\d+) kB/.exec(textOf(`/proc/${pid}/status`)) ?? [];
  return Number(kb ?? 0) / 1_024;
}

function childrenOf(pid: number): number[] {
  try {
    return readdirSync(`/proc/${pid}/task`).flatMap((thread) =>
      textOf(`/proc/${pid}/task/${thread}/children`).split(" ").filter(Boolean).map(Number),
    );
  } catch {
    return [];
  }
}

/** Empty when the process has ended meanwhile. */
function textOf(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}
