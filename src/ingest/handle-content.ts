import { mkdir, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { ItemParts, Job, Result } from "./handle.ts";
import { removeSource, takeIn } from "./handle-file.ts";
import { shortHash, temporaryName } from "./keys.ts";

/** Text that came without a file: notes, clipboards, what an assistant was told to remember. */
export async function handleContent(parts: ItemParts, job: Job<"content">): Promise<Result> {
  const { content, source_type: from, main_tag: mainTag, full_tag: fullTag, title } = job.payload;
  const source = `content:${job.payload.source ?? shortHash(content)}`;
  if (job.op === "delete") return removeSource(parts, job, source);
  const path = join(parts.temporaryFolder, temporaryName(job.id, ".md"));
  await mkdir(parts.temporaryFolder, { recursive: true });
  await writeFile(path, content);
  try {
    return await takeIn(parts, job, {
      path,
      source,
      filename: `${from}.md`,
      ...(title !== undefined && { title }),
      metadata: {
        source_type: from,
        ...(mainTag !== undefined && { main_tag: mainTag }),
        ...(fullTag !== undefined && { full_tag: fullTag }),
      },
    });
  } finally {
    await rm(path, { force: true });
  }
}
