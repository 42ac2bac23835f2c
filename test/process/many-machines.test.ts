import assert from "node:assert/strict";
import { test } from "node:test";
import { CUTS } from "../support/cuttable-line.ts";
import { openMachines } from "./machines.ts";
import { checkAll, runMachines } from "./machines-cut-off.ts";

const DOCUMENTS_PER_CUT = 24;

test("two machines share PostgreSQL, Qdrant and a bucket; one is cut off in the middle, and every document is right", {
  timeout: 200_000,
}, async (t) => {
  const machines = await openMachines();
  t.after(() => machines.close());
  const documents = await runMachines(machines, { cuts: CUTS, documentsPerCut: DOCUMENTS_PER_CUT });
  await checkAll(machines, { documents, cuts: CUTS.length });
  assert.deepEqual(await machines.stop(), [0, 0, 0, 0]);
});
