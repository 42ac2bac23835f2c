import assert from "node:assert/strict";
import { test } from "node:test";
import { openMachines } from "../process/machines.ts";
import { checkAll, runMachines } from "../process/machines-cut-off.ts";
import { CUTS } from "../support/cuttable-line.ts";

const ROUNDS = 6;
const DOCUMENTS_PER_CUT = 40;

test("a machine is cut off again and again, and every document is right", { timeout: 900_000 }, async (t) => {
  const cuts = Array.from({ length: ROUNDS }, () => CUTS).flat();
  const machines = await openMachines();
  t.after(() => machines.close());
  const documents = await runMachines(machines, { cuts, documentsPerCut: DOCUMENTS_PER_CUT });
  await checkAll(machines, { documents, cuts: cuts.length });
  assert.deepEqual(await machines.stop(), [0, 0, 0, 0]);
});
