import { createHash } from "node:crypto";
import { readFileSync, readlinkSync } from "node:fs";
import { hostname } from "node:os";

/** Process ids mean something only on one machine, since it was started, and within one container. */
export const MACHINE = machineId();

function machineId(): string {
  const parts = [hostname(), ...attempted(() => readFileSync("/proc/sys/kernel/random/boot_id", "utf8"))];
  parts.push(...attempted(() => readlinkSync("/proc/self/ns/pid")));
  return createHash("sha256").update(parts.join("\n")).digest("hex").slice(0, 16);
}

/** Not every system has these. */
function attempted(read: () => string): string[] {
  try {
    return [read()];
  } catch {
    return [];
  }
}

/** A process of this machine. */
export function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as { code?: string }).code === "EPERM";
  }
}
