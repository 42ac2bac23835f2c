import { spawn } from "node:child_process";
import { once } from "node:events";
import { globSync, readFileSync, statfsSync } from "node:fs";
import { availableParallelism, constants, tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { type Migrated, prepareMigrated } from "./support/migrated.ts";
import { openQdrant, type QdrantServer } from "./support/qdrant.ts";
import { openS3, type S3Server } from "./support/s3.ts";
import { startServices } from "./support/services.ts";

const CRASH_TESTS = "test/crash";
const MEMORY_FOLDER = "/dev/shm";
/** Eight times what a run has been seen to take. */
const MEMORY_MIN_BYTES = 4 * 1_024 ** 3;

process.exitCode = await main();

async function main(): Promise<number> {
  const { values, positionals } = parseArgs({
    options: { crash: { type: "boolean", default: false } },
    allowPositionals: true,
  });
  const files = positionals.length > 0 ? positionals : findTests(values.crash);
  // Handed no files, node's test runner would go and look for some by rules of its own.
  if (files.length === 0) return fail("there are no test files to run");

  process.env.TMPDIR ??= temporaryFolder();
  try {
    const services = await startServices({ isSynced: false });
    let qdrant: QdrantServer | undefined;
    let s3: S3Server | undefined;
    let migrated: Migrated | undefined;
    try {
      [qdrant, s3] = await Promise.all([openQdrant(), openS3()]);
      migrated = await prepareMigrated(services.postgresUrl);
      const others = [qdrant, s3].map(({ description }) => description);
      process.stderr.write(`Testing against ${[services.description, ...others].join(", ")}\n`);
      return await runTests(files, {
        // Two more than cores: many tests wait for processes to start and stop.
        concurrency: values.crash ? 1 : availableParallelism() + 2,
        env: {
          ...process.env,
          TEST_DATABASE_URL: services.postgresUrl,
          TEST_REDIS_URL: services.redisUrl,
          TEST_QDRANT_URL: qdrant.url,
          TEST_QDRANT_API_KEY: qdrant.apiKey,
          TEST_S3_URL: s3.url,
          TEST_S3_KEY: `${s3.accessKeyId}:${s3.secretAccessKey}`,
          ...migrated.env,
          // Otherwise every Quarry that a test opens would keep its vectors and files there.
          QDRANT_URL: undefined,
          QDRANT_API_KEY: undefined,
          QUARRY_FILES: undefined,
          // Hundreds of processes load the same modules.
          NODE_COMPILE_CACHE: join(import.meta.dirname, "../node_modules/.cache/compiled"),
        },
      });
    } finally {
      await migrated?.remove();
      await Promise.all([services.stop(), qdrant?.stop(), s3?.stop()]);
    }
  } catch (error) {
    return fail(error);
  }
}

function findTests(isCrash: boolean): string[] {
  process.chdir(join(import.meta.dirname, ".."));
  return globSync("test/**/*.test.ts")
    .filter((file) => file.startsWith(`${CRASH_TESTS}/`) === isCrash)
    .sort();
}

/**
 * In memory, where the machine has plenty of it: tests write and sync all the time, and nothing of it is kept. What they
 * kill loses no more by it than it would on a disk.
 */
function temporaryFolder(): string {
  const isUsable = (mount: string) => {
    const [, folder, type, options] = mount.split(" ");
    return folder === MEMORY_FOLDER && type === "tmpfs" && !options!.split(",").includes("noexec");
  };
  if (process.platform !== "linux" || !readFileSync("/proc/mounts", "utf8").split("\n").some(isUsable))
    return tmpdir();
  const { bavail, bsize } = statfsSync(MEMORY_FOLDER);
  return Math.min(bavail * bsize, process.availableMemory()) > MEMORY_MIN_BYTES ? MEMORY_FOLDER : tmpdir();
}

async function runTests(
  files: readonly string[],
  options: { concurrency: number; env: NodeJS.ProcessEnv },
): Promise<number> {
  const flags = [
    "--test",
    "--test-timeout=300000",
    "--test-force-exit",
    `--test-concurrency=${options.concurrency}`,
    "--test-reporter=spec",
  ];
  const child = spawn(process.execPath, [...flags, ...files], { stdio: "inherit", env: options.env });
  // The tests end first, while their servers still run; listening keeps the signal from ending us before them.
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(signal, () => child.kill(signal));
  const [code, signal] = (await once(child, "exit")) as [number | null, NodeJS.Signals | null];
  return code ?? 128 + (signal ? constants.signals[signal] : 0);
}

function fail(error: unknown): number {
  process.stderr.write(`${error instanceof Error ? error.message : error}\n`);
  return 1;
}
