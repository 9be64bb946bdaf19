/** Rows: each row of errors is reached, and says what its error means. What they mean: pairs.test.ts. */
import { expect, test } from "bun:test";
import { examples } from "../../../src/deploy/documents/failure-examples";
import { isSuspensionAnswer } from "../../../src/people/accounts/suspension";
import { rowOf } from "../../../src/proxy/upstream/copilot/failure-match";
import { rows } from "../../../src/proxy/upstream/copilot/failure-rows";

test("each row is reached by its example, and none by its place alone", () => {
  expect(examples).toHaveLength(rows.length);
  for (const [at, meant] of rows.entries()) {
    const [status, code, message, param] = examples[at]!;
    expect([examples[at], rowOf(status, { code, message, param }) === meant]).toEqual([examples[at], true]);
    const rivals = rows.filter(
      (row) =>
        row.status.includes(status) &&
        // A row with words of its own goes before, by what it says.
        (meant.words === undefined) === (row.words === undefined) &&
        (meant.code ? row.code?.test(code) && (row.param?.test(param ?? "") ?? true) : false),
    );
    expect(rivals.length).toBeLessThanOrEqual(1);
  }
});

test("an example at any endpoint means a suspension where its row does, and nowhere else", () => {
  for (const [at, { suspended = false }] of rows.entries()) {
    const example = examples[at]!;
    const [status, code, message] = example;
    expect([example, isSuspensionAnswer(status, `${code} ${message}`)]).toEqual([example, suspended]);
  }
});

test("each row says in a sentence of ours what its error means", () => {
  expect(rows.filter(({ sentence, meaning }) => (sentence === undefined) === (meaning === undefined))).toEqual([]);
});
