import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";

const FILES_PER_FOLDER = 1_000;

/** A tree of small files. */
export async function makeFolder(root: string, count: number): Promise<string> {
  for (let made = 0; made < count; made += FILES_PER_FOLDER) {
    const folder = join(root, `part-${made / FILES_PER_FOLDER}`);
    await mkdir(folder, { recursive: true });
    const some = Array.from({ length: Math.min(FILES_PER_FOLDER, count - made) }, (_, n) =>
      writeFile(join(folder, `${n}.md`), `file ${made + n}`),
    );
    await Promise.all(some);
  }
  return root;
}
