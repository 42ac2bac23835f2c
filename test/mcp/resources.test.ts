import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import type { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { call, connect, makeFolder, type TestFolder } from "./running.ts";

describe("the resources", () => {
  let folder: TestFolder;
  let client: Client;
  let document: string;
  let item: string;
  before(async () => {
    folder = await makeFolder();
    client = await connect(folder.data);
    const { structured } = await call(client, "add_content", {
      content: "# Quartz\n\nQuartz is clear.",
      title: "Clear",
    });
    document = structured.document_id;
    item = structured.queue_id;
  });
  after(async () => {
    await client.close();
    await folder.remove();
  });

  const read = async (uri: string) => {
    const { contents } = await client.readResource({ uri });
    assert.equal(contents.length, 1);
    return contents[0] as { uri: string; mimeType: string; text: string };
  };

  it("are listed: the status, documents, and templates for the rest", async () => {
    const { resources } = await client.listResources();
    assert.deepEqual(
      resources.map(({ uri, title }) => [uri, title]),
      [
        ["quarry://status", "Status"],
        [`quarry://documents/${document}`, "Clear"],
      ],
    );
    const { resourceTemplates } = await client.listResourceTemplates();
    assert.deepEqual(
      resourceTemplates.map(({ uriTemplate, description }) => [uriTemplate, description !== undefined]),
      [
        ["quarry://documents/{id}{?from_page}", true],
        ["quarry://queue/{id}", true],
      ],
    );
  });

  it("tell the status and an item as JSON", async () => {
    const status = await read("quarry://status");
    assert.equal(status.mimeType, "application/json");
    assert.equal(JSON.parse(status.text).items.done, 1);
    const shown = JSON.parse((await read(`quarry://queue/${item}`)).text);
    assert.deepEqual([shown.queue_id, shown.result.document_id], [item, document]);
  });

  it("give a document's text, marked as quoted", async () => {
    const { mimeType, text } = await read(`quarry://documents/${document}`);
    assert.equal(mimeType, "text/markdown");
    assert.match(text, /^<!-- Text of the document .* data, not instructions\. Pages 1 to 1 of 1\. -->\n/);
    assert.match(text, /Quartz is clear\./);
  });

  it("give a long text in parts that follow each other", async () => {
    const path = join(folder.path, "long.txt");
    const line = (n: number) => `Line ${n} of the ledger is about as long as lines of ledgers are.`;
    await writeFile(path, Array.from({ length: 5_000 }, (_, n) => line(n)).join("\n\n"));
    const { structured } = await call(client, "ingest_path", { path, wait: false });
    const { document_id: id } = await finished(structured.queue_id);
    let uri: string | undefined = `quarry://documents/${id}`;
    let all = "";
    let parts = 0;
    for (; uri !== undefined; parts++) {
      const { text } = await read(uri);
      assert.ok(text.length < 110_000);
      all += text;
      uri = /Read (quarry:\S+) for the rest/.exec(text)?.[1];
    }
    assert.ok(parts > 1);
    for (const n of [0, 1, 2_500, 4_999]) assert.ok(all.includes(line(n)), line(n));
  });

  it("are refused by name when they are not there", async () => {
    const missing = "00000000-0000-7000-8000-000000000000";
    const uris = [
      `documents/${missing}`,
      `queue/${missing}`,
      "queue/../status",
      "nothing",
      `documents/${document}?page=1`,
    ];
    for (const uri of uris)
      await assert.rejects(client.readResource({ uri: `quarry://${uri}` }), { code: -32_002 }, uri);
  });

  /** What an item came to; the whole of a long document is not waited for. */
  async function finished(id: string): Promise<{ document_id: string }> {
    for (;;) {
      const { documents } = (await call(client, "list_documents", { name: "long.txt" })).structured;
      const [found] = documents;
      if (found) {
        const details = (await call(client, "show_document", { id: found.id })).structured;
        if (details.ocr.total > 0 && details.ocr.completed === details.ocr.total)
          return { document_id: found.id };
      }
      assert.notEqual((await call(client, "show_queue_item", { id })).structured.status, "failed");
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }
});
