import { after, before, describe } from "node:test";
import type { Database, manualClock } from "../../src/index.ts";
import { createFixture, type Fixture } from "./fixture.ts";
import { testEnqueue } from "./suite/enqueue.ts";
import { testGroups } from "./suite/groups.ts";
import { testLifecycle } from "./suite/lifecycle.ts";
import { testParents } from "./suite/parents.ts";
import { testQueuesApart } from "./suite/queues-apart.ts";
import { testReserved } from "./suite/reserved.ts";
import { testResults } from "./suite/results.ts";

/** The one suite that every database must pass, unchanged. */
export function testQueueStore(
  name: string,
  open: (
    clock: ReturnType<typeof manualClock>,
  ) => Promise<{ database: Database; drop?: () => Promise<void> }>,
): void {
  describe(`queues on ${name}`, () => {
    let fixture: Fixture;
    before(async () => {
      fixture = await createFixture(open);
    });
    after(() => fixture.close());

    testLifecycle(() => fixture);
    testEnqueue(() => fixture);
    testResults(() => fixture);
    testQueuesApart(() => fixture);
    testParents(() => fixture);
    testGroups(() => fixture);
    testReserved(() => fixture);
  });
}
