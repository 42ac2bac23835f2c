import { serveIsolate } from "../isolate.ts";
import { extractFrom } from "./find.ts";

serveIsolate(() => ({ extract: (texts: readonly string[]) => texts.map(extractFrom) }));
