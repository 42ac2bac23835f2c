import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { catalogueQuery } from "../../src/agents/catalogue-questions.ts";
import { decompose, planSchema, STEPS_MAX } from "../../src/agents/plan.ts";
import { checkedSelect } from "../../src/agents/sql-guard.ts";

describe("a plan without a model", () => {
  const tasks = (question: string) => decompose(question).map(({ kind, task }) => `${kind}: ${task}`);

  it("a simple question is one part, as it was asked", () => {
    for (const question of [
      "Who must be told before a blast?",
      "What did Noor Haddad and Gwen Hartley do?",
      "What happened to Walter Eames, Cora Wilding and the pump?",
      "I am ill and cannot work today, whom do I tell?",
      "granite",
    ])
      assert.deepEqual(tasks(question), [`standard: ${question}`]);
  });

  it("questions in one sentence are parts, which keep what they are about", () => {
    assert.deepEqual(tasks("What is Big Nell, who built it and when was it installed?"), [
      "standard: What is Big Nell",
      "standard: who built it (Big Nell)?",
      "standard: when was it installed (Big Nell)?",
    ]);
    assert.deepEqual(tasks("Who is told before a blast and how far must people keep away?"), [
      "standard: Who is told before a blast",
      "standard: how far must people keep away (told before blast)?",
    ]);
    assert.deepEqual(tasks("When are wages paid, and who is Declan Pryce's deputy?"), [
      "standard: When are wages paid",
      "standard: who is Declan Pryce's deputy?",
    ]);
  });

  it("so are questions in sentences of their own; what is said before one belongs to it", () => {
    assert.deepEqual(tasks("Why did the flood happen? What did it cost?"), [
      "standard: Why did the flood happen?",
      "standard: What did it cost (flood happen)?",
    ]);
    assert.deepEqual(tasks("I have had a baby. How much leave is there?"), [
      "standard: I have had a baby. How much leave is there?",
    ]);
  });

  it("what is about the catalogue goes to the catalogue", () => {
    assert.deepEqual(tasks("How many documents mention slate and what is it used for?"), [
      "sql: How many documents mention slate",
      "standard: what is it used for (slate)?",
    ]);
    assert.deepEqual(tasks("What is Big Nell and how many documents mention her?"), [
      "standard: What is Big Nell",
      "sql: how many documents mention Big Nell?",
    ]);
    assert.deepEqual(tasks("What is slate? How many documents mention it?"), [
      "standard: What is slate?",
      "standard: How many documents mention it (slate)?",
    ]);
    assert.deepEqual(tasks("How many days of paid leave are there a year?").length, 1);
  });

  it("whatever is asked, the plan is one that a model might have made", () => {
    const words = fc.constantFrom(
      "who",
      "what",
      "and",
      ",",
      "?",
      ".",
      "how many",
      "documents",
      "it",
      "Big Nell",
      "'",
      ";",
    );
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string({ minLength: 1 }),
          fc.array(words, { minLength: 1 }).map((some) => some.join(" ")),
        ),
        (text) => {
          const question = text.trim() || "x";
          const plan = decompose(question);
          assert.ok(plan.length <= STEPS_MAX);
          assert.ok(planSchema.safeParse({ workers: plan }).success, JSON.stringify(plan));
        },
      ),
    );
  });
});

describe("questions about the catalogue", () => {
  const QUERIES: readonly (readonly [question: string, query: RegExp])[] = [
    ["How many documents are there?", /^select count\(\*\) as documents from documents$/],
    ["how many pages do we have", /from pages$/],
    ["Count the chunks", /from chunks$/],
    ["How many entities are there in total?", /from entities$/],
    ["How many organisations are there?", /from entities where type = 'organization'$/],
    ["How many relations exist?", /from relations$/],
    ["How many documents are in the collection stones?", /where collection = 'stones'$/],
    [
      "How many pages are in the stones collection?",
      /select id from documents where collection = 'stones'\)$/,
    ],
    ["Which documents mention Big Nell?", /lower\(content\) like '%big nell%'/],
    ["Where is Big Nell mentioned?", /like '%big nell%'/],
    ["How many documents mention 100% O'Neill?", /like '%100!% o''neill%' escape '!'/],
    ["Which documents mention Big Nell and Priya Raman?", /'%big nell%'.*document_id in \(.*'%priya raman%'/],
    ["List documents in collection default", /where collection = 'default' order by filename$/],
    ["What documents do you have?", /^select filename, title, collection, pages from documents order/],
    ["Which collections exist?", /group by collection/],
    ["Which is the longest document?", /order by pages desc/],
    ["What are the newest documents?", /order by created_at desc/],
    ["Who is the most mentioned person?", /type = 'person' order by mentions desc/],
    ["Which places are mentioned?", /type = 'place'/],
    ["How many pages does the employee handbook have?", /lower\(filename\) like '%employee handbook%'/],
  ];

  it("have their query, which the guard lets through", () => {
    for (const [question, query] of QUERIES) {
      const sql = catalogueQuery(question);
      assert.match(sql ?? "none", query, question);
      assert.equal(checkedSelect(sql!), sql);
    }
  });

  it("what the documents say is not one of them", () => {
    for (const question of [
      "How many days of paid leave are there?",
      "How many people died in the flood?",
      "Which documents must a driver carry?",
      "What is a document?",
      "Where is the assembly point?",
      "Which company built Big Nell?",
    ])
      assert.equal(catalogueQuery(question), undefined, question);
  });

  it("whatever they name, it stays a text in the query", () => {
    fc.assert(
      fc.property(fc.string(), (name) => {
        for (const form of [
          "Which documents mention %",
          "List documents in collection %",
          "Where is % mentioned?",
        ]) {
          const sql = catalogueQuery(form.replace("%", () => name));
          if (sql !== undefined) checkedSelect(sql);
        }
      }),
    );
  });
});
