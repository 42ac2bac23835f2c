import type { Quarry } from "../app.ts";
import type { WaitingItems } from "../ingest/waiting.ts";
import { plain } from "./output.ts";

/** A row's machine, as a cell or none: it is told where some of the rows are not this machine's, and nowhere else. */
export function machineCell(
  quarry: Pick<Quarry, "settings">,
  machines: readonly (string | null)[],
): (machine: string | null) => string[] {
  const isTold = machines.some((machine) => machine !== null && machine !== quarry.settings.machine);
  return (machine) => (isTold ? [plain(machine ?? "-")] : []);
}

/** Of items that wait, those that only workers of a machine without any can take. */
export function unreachedText({ withoutWorkers }: WaitingItems): string[] {
  return withoutWorkers.map(({ machine, items }) => {
    const name = plain(machine);
    return `${items} of them for a worker on ${name}, where none runs (run quarry up on ${name})`;
  });
}
