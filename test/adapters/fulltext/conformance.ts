import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, beforeEach, describe, it } from "node:test";
import fc from "fast-check";
import type { TextEntry, TextIndex } from "../../../src/adapters/fulltext.ts";
import type { IndexFilter } from "../../../src/adapters/vectors.ts";

/** What every text index must do. `open` gives an empty one. */
export function testTextIndex(
  name: string,
  open: () => Promise<{ index: TextIndex; close: () => Promise<void> }>,
): void {
  describe(`words in ${name}`, () => {
    let index: TextIndex;
    let close: () => Promise<void>;
    /** Each test has tenants of its own. */
    let tenant: string;
    before(async () => {
      ({ index, close } = await open());
    });
    after(() => close());
    beforeEach(() => {
      tenant = `tenant ${randomUUID()}`;
    });

    const entry = (chunkId: string, content: string, more: Partial<TextEntry> = {}): TextEntry => ({
      chunkId,
      documentId: randomUUID(),
      tenant,
      collection: "papers",
      context: "",
      content,
      ...more,
    });
    const found = async (query: string, filter: Partial<IndexFilter> = {}, limit = 10) =>
      (await index.search(query, { limit, filter: { tenant, ...filter } })).map((hit) => hit.chunkId);

    it("finds chunks by some of the words of a question, best first", async () => {
      await index.upsert([
        entry("boiler", "The boiler is inspected every spring by the engineer."),
        entry("crane", "The crane lifts blocks of up to nine tonnes. The crane is old."),
        entry("canteen", "The canteen opens at noon; what is served is on the board."),
      ]);
      assert.deepEqual(await found("How heavy are the blocks that the crane can lift?"), ["crane"]);
      assert.deepEqual(await found("who inspects the boiler, and is the crane old?"), ["crane", "boiler"]);
      const hits = await index.search("boiler crane", { limit: 10, filter: { tenant } });
      assert.ok(hits[0]!.score >= hits[1]!.score);
    });

    it("does not let words that stand around a question decide", async () => {
      await index.upsert([
        entry("filler", "What is it that we are to do with this, and how is it that they did the other?"),
        entry("answer", "Gauge pressure: 4 bar."),
      ]);
      assert.deepEqual(await found("What is the pressure that we are to have?"), ["answer"]);
      assert.deepEqual(await found("what is it"), ["filler"]);
    });

    it("knows a word in its other forms, with and without accents and capitals", async () => {
      await index.upsert([
        entry("a", "Die Brücke; le CAFÉ; the quarries were inspected"),
        entry("b", "nothing of the kind"),
      ]);
      for (const query of ["brucke", "BRÜCKE", "cafe\u0301", "quarry inspection", "inspecting"])
        assert.deepEqual(await found(query), ["a"], query);
    });

    it("finds headings too, but what the chunk itself says counts more", async () => {
      await index.upsert([
        entry("under", "Opens at eight.", { context: "Handbook\nWeighbridge" }),
        entry("says", "The weighbridge opens at eight.", { context: "Handbook\nVisitors" }),
      ]);
      assert.deepEqual(await found("weighbridge"), ["says", "under"]);
    });

    it("says how much of a query a chunk holds, from 0 to 1", async () => {
      const crowd = Array.from({ length: 40 }, (_none, number) =>
        entry(`crowd ${number}`, `filler ${number}`),
      );
      await index.upsert([
        ...crowd,
        entry("all", "granite marble limestone slate"),
        entry("one", "a wall of slate"),
        entry("others'", "granite marble limestone slate filler", { tenant: `${tenant} of others` }),
      ]);
      const scores = async (query: string) => {
        const hits = await index.search(query, { limit: 10, filter: { tenant } });
        return new Map(hits.map((hit) => [hit.chunkId, hit.score]));
      };
      const asked = await scores("granite marble limestone slate");
      assert.ok(asked.get("all")! > 0.5 && asked.get("all")! <= 1, String(asked.get("all")));
      assert.ok(asked.get("one")! < 0.3, String(asked.get("one")));
      const absent = await scores("slate quartz feldspar basalt gneiss");
      assert.ok(absent.get("one")! < 0.2, "words that stand nowhere count too");
    });

    it("finds what punctuation joins", async () => {
      await index.upsert([
        entry("js", "It runs on node.js 24 and writes to a@b.example."),
        entry("apart", "A node of the tree. JS is short for nothing here."),
      ]);
      assert.equal((await found("node.js"))[0], "js");
      assert.equal((await found("a@b.example"))[0], "js");
      assert.equal((await found("version 24"))[0], "js");
    });

    it("takes a word of Katakana as one, and wide letters as plain ones", async () => {
      await index.upsert([
        entry("server", "新しいサーバーを設定する。型番はＡＢＣ１２３です。"),
        entry("football", "サッカーの試合とバナナ"),
      ]);
      assert.deepEqual(await found("サーバー"), ["server"]);
      assert.deepEqual(await found("ABC123"), ["server"]);
      assert.deepEqual(await found("ａｂｃ１２３"), ["server"]);
    });

    it("looks for letters in one piece, however they were typed", async () => {
      await index.upsert([entry("ko", "한국어 문서입니다")]);
      assert.deepEqual(await found("한국어".normalize("NFD")), ["ko"]);
    });

    it("asks nothing more of a chunk because of an emoji", async () => {
      await index.upsert([entry("coffee", "Where to drink coffee"), entry("tea", "Where to drink tea")]);
      const [plain, adorned] = await Promise.all(
        ["coffee", "coffee ❤️"].map((query) => index.search(query, { limit: 1, filter: { tenant } })),
      );
      assert.deepEqual(adorned, plain);
    });

    it("finds text in scripts that write without spaces", async () => {
      await index.upsert([
        entry("zh", "石灰石采石场位于山谷的北部，每年生产十万吨石料。"),
        entry("ja", "採石場の安全規則は毎年更新されます。"),
        entry("ko", "채석장에서는 매년 안전 교육을 실시한다."),
        entry("th", "เหมืองหินตั้งอยู่ทางเหนือของหุบเขา"),
      ]);
      assert.deepEqual((await found("采石场在哪里？")).slice(0, 1), ["zh"]);
      assert.deepEqual((await found("安全規則")).slice(0, 1), ["ja"]);
      assert.deepEqual((await found("안전 교육")).slice(0, 1), ["ko"]);
      assert.deepEqual((await found("หุบเขา")).slice(0, 1), ["th"]);
      assert.deepEqual(await found("石"), ["zh", "ja"]);
    });

    it("never fails, whatever is asked", async () => {
      await index.upsert([entry("a", "Plain words about a stone, NEAR and far.")]);
      const odd = [
        ...[
          '"',
          '""',
          "'",
          "*",
          "sto*",
          "-stone",
          "NOT stone",
          "stone AND",
          "NEAR(stone)",
          "(",
          "content:stone",
        ],
        ...["^stone", "stone + far", "{a b}: c", "\0", "sto\0ne", "🪨", "️", "\ud800", "  ", "", "\\", ";--"],
        ..."́ ‍ ​ ٣ ½ ﷺ İ ẞ ﬁ".split(" "),
        "stone ".repeat(2_000),
        Array.from({ length: 2_000 }, (_none, number) => `word${number}`).join(" "),
        "石".repeat(10_000),
        "a".repeat(100_000),
      ];
      for (const query of odd) assert.ok((await found(query)).length <= 1, query.slice(0, 20));
      await fc.assert(
        fc.asyncProperty(fc.string({ unit: "binary", maxLength: 200 }), async (query) => {
          await found(query);
        }),
        { numRuns: 200 },
      );
      assert.deepEqual(await found('the "stone'), ["a"]);
    });

    it("takes any text", async () => {
      await index.upsert([
        entry("nul", "before\0after"),
        entry("half", "half \ud800 pair"),
        entry("empty", ""),
        entry("long", "granite ".repeat(100_000)),
      ]);
      assert.deepEqual(await found("granite"), ["long"]);
      assert.deepEqual(await found("pair"), ["half"]);
    });

    it("keeps one entry a chunk however often it is written", async () => {
      const one = { documentId: randomUUID() };
      await index.upsert([entry("a", "limestone", one), entry("b", "slate", one)]);
      await index.upsert([entry("a", "limestone", one)]);
      await index.upsert([entry("a", "marble", one), entry("a", "granite", one)]);
      assert.deepEqual(await found("limestone marble"), []);
      assert.deepEqual(await found("granite"), ["a"]);
      assert.deepEqual(await found("slate"), ["b"]);
    });

    it("removes what is a document's and no more, and does not mind doing it again", async () => {
      const [mine, successor] = [randomUUID(), randomUUID()];
      const texts = ["a", "b", "c", "d"].map((id) => entry(id, "limestone", { documentId: mine }));
      await index.upsert([entry("b", "limestone", { documentId: successor })]);
      await index.upsert(texts);
      for (let round = 0; round < 2; round++) {
        await index.remove({ documentId: mine, chunkIds: ["a", "b", "none"] });
        assert.deepEqual((await found("limestone")).sort(), ["b", "c", "d"]);
      }
      for (let round = 0; round < 2; round++) {
        await index.remove({ documentId: mine });
        assert.deepEqual(await found("limestone"), ["b"]);
      }
      const [hit] = await index.search("limestone", { limit: 1, filter: { tenant } });
      assert.equal(hit!.documentId, successor);
      assert.deepEqual(await found("limestone", { documentIds: [mine] }), []);
    });

    it("holds nothing after it was cleared, and takes what comes then", async () => {
      const written = entry("a", "limestone");
      await index.upsert([written, entry("b", "slate")]);
      await index.clear();
      assert.deepEqual(await found("limestone slate"), []);
      await index.upsert([written]);
      assert.deepEqual(await found("limestone slate"), ["a"]);
    });

    it("shows a tenant nothing of the others, even where ids are the same", async () => {
      const others = entry("a", "limestone and slate", { tenant: `${tenant} of others` });
      await index.upsert([others, entry("a", "limestone")]);
      assert.deepEqual(await found("slate"), []);
      assert.deepEqual(await found("limestone", { documentIds: [others.documentId] }), []);
      assert.deepEqual(await found("limestone", { tenant: "nobody" }), []);
      await index.remove({ documentId: others.documentId });
      assert.deepEqual(await found("limestone"), ["a"]);
    });

    it("filters inside the search: few chunks among many that match better are all found", async () => {
      const crowd = Array.from({ length: 6_000 }, (_none, number) =>
        entry(`crowd ${number}`, `limestone ${number % 3 ? "slate" : "limestone"}`, { documentId: CROWD }),
      );
      for (let start = 0; start < crowd.length; start += 500)
        await index.upsert(crowd.slice(start, start + 500));
      const few = ["x", "y", "z"].map((id) =>
        entry(id, "There is some limestone at the far end of the valley.", { collection: "rare" }),
      );
      await index.upsert(few);
      assert.deepEqual((await found("limestone slate", { collection: "rare" })).sort(), ["x", "y", "z"]);
      const documentIds = few.slice(1).map(({ documentId }) => documentId);
      assert.deepEqual((await found("limestone slate", { documentIds })).sort(), ["y", "z"]);
      assert.deepEqual(await found("limestone slate", { documentIds, collection: "papers" }), []);
      assert.deepEqual(await found("limestone slate", { documentIds: [] }), []);
      assert.equal((await found("limestone slate", { documentIds: [CROWD] }, 100)).length, 100);
      assert.equal((await found("limestone slate", {}, 100)).length, 100);
      const rarest = await found("limestone in the valley");
      assert.deepEqual(rarest.slice(0, 3).sort(), ["x", "y", "z"], "rare words decide, common ones do not");
    });
  });
}

const CROWD = randomUUID();
