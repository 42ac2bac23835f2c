import { serveIsolate } from "../isolate.ts";
import { openReader, type ReaderSetup } from "./reader.ts";

serveIsolate((setup: ReaderSetup) => openReader(setup));
