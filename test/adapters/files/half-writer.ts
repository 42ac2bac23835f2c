import { openFolderFiles } from "../../../src/adapters/files/folder.ts";
import { openS3Files } from "../../../src/adapters/files/s3.ts";
import { systemClock } from "../../../src/clock.ts";

export interface HalfWriterSettings {
  readonly folder?: string;
  readonly s3?: Omit<Parameters<typeof openS3Files>[0], "clock">;
}

if (import.meta.main) await writeHalf(JSON.parse(process.argv[2]!));

/** Writes a file of 20 MB, says so, and never comes to its end. */
async function writeHalf({ folder, s3, path }: HalfWriterSettings & { path: string }): Promise<void> {
  const files = s3 ? openS3Files({ ...s3, clock: systemClock }) : openFolderFiles(folder!);
  await files.put(path, endless());
}

async function* endless(): AsyncGenerator<Uint8Array> {
  for (let megabytes = 0; megabytes < 20; megabytes++) yield Buffer.alloc(1_048_576, 7);
  process.stdout.write("writing\n");
  await new Promise(() => setInterval(() => undefined, 1_000));
}
