/** A process that writes to an index that others use: path, name of the writer, batches. */
import { openEmbeddedIndex } from "../../src/adapters/embedded-index.ts";

const [path, name, batches] = process.argv.slice(2);
const index = await openEmbeddedIndex({ path: path!, model: "test", dimensions: 8 });
for (let batch = 0; batch < Number(batches); batch++) {
  const chunks = Array.from({ length: 40 }, (_none, number) => ({
    chunkId: `${name} ${batch} ${number}`,
    documentId: name!,
    tenant: "tenant",
    collection: "c",
  }));
  const vector = Float32Array.from({ length: 8 }, () => Math.random() - 0.5);
  await index.vectors.upsert(chunks.map((chunk) => ({ ...chunk, vector })));
  await index.fulltext.upsert(chunks.map((chunk) => ({ ...chunk, context: name!, content: "limestone" })));
  await index.vectors.remove({ documentId: name!, chunkIds: [`${name} ${batch} 7`] });
}
await index.close();
