import assert from "node:assert/strict";
import { describe, it } from "node:test";
import fc from "fast-check";
import { normaliseName } from "../../../src/adapters/entities/normalise.ts";

describe("normalised names", () => {
  const same = [
    ["The United Nations", "united  nations", "UNITED NATIONS"],
    ["Dr. Jane Goodall", "Jane Goodall's", "Prof. Dr. Jane Goodall", "jane goodall"],
    ["U.S.", "the US"],
    ["Straße", "STRASSE", "STRAẞE"],
    ["Ｓｏｎｙ", "Sony"],
    ["Οδυσσεύς", "ΟΔΥΣΣΕΎΣ"],
    ["O’Connor", "O'Connor"],
    ["J. R. R. Tolkien", "J.R.R. Tolkien", "JRR Tolkien"],
    ["İstanbul", "Istanbul"],
    ["Saint-Rémy", "Saint Re\u0301my"],
  ];
  for (const names of same) {
    it(`${names.join(", ")} are one`, () => {
      assert.equal(new Set(names.map(normaliseName)).size, 1);
    });
  }

  it("what tells names apart stays", () => {
    const names = ["C", "C++", "C#", "AT&T", "ATT", "The", "Model 3", "Model 4", "名前"];
    assert.equal(new Set(names.map(normaliseName)).size, names.length);
    assert.ok(names.every((name) => normaliseName(name) !== ""));
  });

  it("once is enough", () => {
    fc.assert(
      fc.property(fc.string({ unit: "grapheme" }), (name) => {
        const once = normaliseName(name);
        assert.equal(normaliseName(once).replace(/^(?:the|an?) /, ""), once.replace(/^(?:the|an?) /, ""));
      }),
    );
  });
});
