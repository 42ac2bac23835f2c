import { PLACES } from "./places.ts";
import { testRagQueue } from "./queue-suite.ts";

for (const place of PLACES) if (place.name.startsWith("Redis")) testRagQueue(place);
