import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, describe, it } from "node:test";
import { openNeo4jGraph } from "../../../src/adapters/graph/neo4j.ts";
import type { Neo4jSettings } from "../../../src/adapters/graph/neo4j-link.ts";
import type { ChunkGraph, GraphStore } from "../../../src/adapters/graph.ts";
import { createLog } from "../../../src/log.ts";
import {
  BOLT_DATABASE,
  BOLT_PASSWORD,
  BOLT_USER,
  type BoltServer,
  startBoltServer,
} from "../../support/bolt-server.ts";
import { neo4jProblems } from "../../support/cypher-engine.ts";
import { testGraphStore } from "./conformance.ts";

const { NEO4J_URL, NEO4J_USER = "neo4j", NEO4J_PASSWORD, NEO4J_DATABASE } = process.env;

if (NEO4J_URL) {
  testGraphStore("Neo4j", async () => {
    const settings = { url: NEO4J_URL, user: NEO4J_USER, password: NEO4J_PASSWORD, database: NEO4J_DATABASE };
    const graph = openNeo4jGraph(settings);
    return { graph, close: () => graph.close() };
  });
}

let server: BoltServer;
before(async () => {
  server = await startBoltServer();
});
after(() => server.close());

const open = (settings: Partial<Neo4jSettings> = {}): GraphStore =>
  openNeo4jGraph({ url: server.url, user: BOLT_USER, password: BOLT_PASSWORD, ...settings });

testGraphStore(
  "Neo4j's words, executed by a stand-in (its planner and its locks stay unproved)",
  async () => {
    const graph = open();
    return { graph, close: () => graph.close() };
  },
);

describe("Neo4j's own analysis, without executing anything", () => {
  it("has nothing against any statement that the suite above sent, schema included", async () => {
    const problems: string[] = [];
    for (const [statement, params] of server.statements)
      for (const problem of await neo4jProblems(statement, params)) problems.push(`${statement}: ${problem}`);
    assert.deepEqual(problems, []);
    assert.ok(server.statements.size >= 25, `${server.statements.size} statements were sent`);
  });

  it("would have something against a wrong one", async () => {
    assert.notDeepEqual(await neo4jProblems("MATCH (e:QuarryEntity) RETURN f.id", {}), []);
    assert.notDeepEqual(await neo4jProblems("MATCH (e) RETURN e LIMIT $limit", {}), []);
  });
});

describe("a graph in Neo4j, with a server that fails (the in-repo stand-in)", () => {
  const tenant = "tenant";
  const written = (): ChunkGraph => ({
    chunkKey: randomUUID(),
    chunkId: randomUUID(),
    documentId: randomUUID(),
    tenant,
    collection: "c",
    extraction: {
      entities: [{ name: `Name ${randomUUID()}`, type: "person", confidence: 1, start: 0, end: 4 }],
      relations: [],
    },
  });
  const nameIn = ({ extraction }: ChunkGraph) => extraction.entities[0]!.name;

  it("a deadlock, a lost leader, a cut connection and a deletion by another are tried again, nothing is written twice", async () => {
    const graph = open({ url: server.url.replace("bolt://", "neo4j://") });
    const faults = [
      { on: "RUN", statement: "MERGE (e:", code: "Neo.TransientError.Transaction.DeadlockDetected" },
      { on: "COMMIT", code: "Neo.ClientError.Cluster.NotALeader" },
      { on: "RUN", statement: "DELETE m", code: "cut" },
      { on: "RUN", statement: "MERGE (e:", code: "Neo.ClientError.Statement.EntityNotFound" },
    ] as const;
    for (const fault of faults) {
      const chunk = written();
      const before = { ...server.counts };
      server.fail(fault);
      await graph.put([chunk]);
      const [entity, ...others] = await graph.find([nameIn(chunk)], { tenant });
      assert.deepEqual([entity!.mentions, others.length], [1, 0]);
      assert.equal(server.counts.committed - before.committed >= 1, true);
      assert.equal(server.counts.rolledBack - before.rolledBack, 1, fault.code);
    }
    await graph.close();
  });

  it("when the answer to a commit is lost, writing again changes nothing", async () => {
    const graph = open();
    const chunk = written();
    server.fail({ on: "COMMIT", code: "cut", isDone: true });
    await graph.put([chunk]);
    const [entity] = await graph.find([nameIn(chunk)], { tenant });
    assert.equal(entity!.mentions, 1);
    await graph.close();
  });

  it("what is refused is told at once and leaves nothing behind", async () => {
    const graph = open();
    const chunk = written();
    await graph.put([written()]);
    const { begun } = server.counts;
    const code = "Neo.ClientError.Schema.ConstraintValidationFailed";
    server.fail({ on: "RUN", statement: "[m:MENTIONS]->(e)", code });
    await assert.rejects(graph.put([chunk]), { code: "database_failed", message: /as the test wants/ });
    assert.equal(server.counts.begun, begun + 1);
    assert.deepEqual(await graph.find([nameIn(chunk)], { tenant }), []);
    await graph.close();
  });

  it("too little memory is not taken for an outage: less at once may fit", async () => {
    const graph = open({ retryMsMax: 1 });
    await graph.put([written()]);
    const code = "Neo.TransientError.General.MemoryPoolOutOfMemoryError";
    const fault = { on: "RUN", statement: "MERGE (c:", code } as const;
    server.fail(fault, fault);
    await assert.rejects(graph.put([written()]), { code: "resource_exhausted" });
    await graph.close();
  });

  it("a server that is away is store_unavailable, and is found again without being opened anew", async () => {
    const away = await startBoltServer();
    const logged: string[] = [];
    const graph = open({
      url: away.url,
      retryMsMax: 50,
      log: createLog({ destination: { write: (line) => void logged.push(line) } }),
    });
    await away.leave();
    const chunk = written();
    const gone = { code: "store_unavailable", message: /NEO4J_URL/ };
    await assert.rejects(graph.put([chunk]), gone);
    await assert.rejects(graph.find(["x"], { tenant }), gone);
    await assert.rejects(graph.check(), gone);
    assert.equal(logged.length, 1, "said once, not with each try");
    assert.doesNotMatch(logged[0]!, /canary/);
    await away.listen();
    await graph.put([chunk]);
    assert.equal((await graph.find([nameIn(chunk)], { tenant })).length, 1);
    // A pooled connection that broke meanwhile is no trouble for a reader.
    await away.leave();
    await away.listen();
    assert.equal((await graph.find([nameIn(chunk)], { tenant })).length, 1);
    await graph.close();
    await away.close();
  });

  it("a wrong password or database says which setting to mend, and no password", async () => {
    for (const [settings, setting] of [
      [{ password: "wrong-canary" }, /NEO4J_PASSWORD/],
      [{ database: "nowhere" }, /NEO4J_DATABASE/],
    ] as const) {
      const graph = open({ ...settings, retryMsMax: 50 });
      await assert.rejects(graph.check(), (error: Error & { code: string }) => {
        assert.equal(error.code, "store_unavailable");
        assert.match(error.message, setting);
        assert.doesNotMatch(error.message, /canary/);
        return true;
      });
      await graph.close();
    }
  });

  it("is asked through a cluster's routes, too, and in the database that is set", async () => {
    const graph = open({ url: server.url.replace("bolt://", "neo4j://"), database: BOLT_DATABASE });
    const chunk = written();
    await graph.put([chunk]);
    assert.equal((await graph.find([nameIn(chunk)], { tenant })).length, 1);
    await graph.close();
  });

  it("an address that is none is refused when it is opened; a closed one refuses", async () => {
    assert.throws(() => open({ url: "http://127.0.0.1:7687" }), { code: "invalid_input" });
    const graph = open();
    await graph.close();
    await assert.rejects(graph.find(["x"], { tenant }), { code: "shutting_down" });
  });
});
