/** What is learnt of a model's tokenizer: within what bounds, how soon, and that nothing a broken upstream reports spoils it. */
import { afterAll, describe, expect, test } from "bun:test";
import { factorsOf } from "../../src/demo/scripted-replies";
import {
  enoughExchanges,
  factorBounds,
  type LocalCount,
  learnFactor,
  leastOf,
  marginOf,
  newFactor,
  predict,
  type TokenFactor,
} from "../../src/tokens/token-factor";
import { chinese, pieces } from "../support/corpus";
import { plainTokens } from "../support/model-tokenizer";
import { sharedTokenizer } from "../support/tokenizer";

const tokenizer = sharedTokenizer();
afterAll(() => tokenizer.close());

const learn = (factor: TokenFactor, local: LocalCount, reported: number) =>
  learnFactor(factor, local, reported, 1) ?? factor;
const answer = (factor: TokenFactor, local: LocalCount) =>
  (predict(factor, local) - local.fixed) * (1 + marginOf(factor)) + local.fixed;

const counted = new Map<string, number>();
async function localTokens(text: string): Promise<number> {
  if (!counted.has(text)) counted.set(text, await tokenizer.count([text]));
  return counted.get(text)!;
}

/** The turns of agents' sessions: instructions first, each prompt holds the ones before it, and now and then a session begins anew. */
async function corpus(model: string, count: number, tools: string) {
  const { texts: ofTexts, tools: ofTools } = factorsOf(model);
  const toolTokens = await localTokens(tools);
  let history: string[] = [];
  const exchanges: { local: LocalCount; reported: number }[] = [];
  for (let at = 0; at < count; at++) {
    if (at % 9 === 0) history = pieces.slice(0, 3);
    history.push(pieces[(at * 37) % pieces.length]!, at % 5 === 0 ? chinese : pieces[(at * 53) % pieces.length]!);
    let texts = 0;
    for (const text of history) texts += await localTokens(text);
    const size = history.reduce((sum, text) => sum + plainTokens(text), 0);
    exchanges.push({
      local: { texts, tools: toolTokens, fixed: 4 * history.length },
      reported: Math.ceil(size * ofTexts + plainTokens(tools) * ofTools + 4 * history.length),
    });
  }
  return exchanges;
}

const toolList = JSON.stringify(
  pieces.slice(0, 12).map((text, at) => ({
    name: `tool_${at}`,
    description: text.slice(0, 1200),
    input_schema: { type: "object", properties: { path: { type: "string", description: text.slice(1200, 1500) } } },
  })),
);

describe("after 20 exchanges the answer is within -2 % and +8 %", () => {
  test.each([
    ["gpt-5.4", "with tools", toolList],
    ["gpt-5.4", "without tools", ""],
    ["claude-sonnet-4.6", "with tools", toolList],
    ["claude-opus-4.8", "with tools", toolList],
    ["claude-opus-4.8", "without tools", ""],
    ["gemini-3.5-flash", "with tools", toolList],
  ])("of %s's own count, %s", async (model, _, tools) => {
    let factor = newFactor(1.15);
    const offs: number[] = [];
    for (const [at, { local, reported }] of (await corpus(model, 60, tools)).entries()) {
      if (at >= enoughExchanges) offs.push(answer(factor, local) / reported - 1);
      factor = learn(factor, local, reported);
    }
    expect(Math.min(...offs)).toBeGreaterThan(-0.02);
    expect(Math.max(...offs)).toBeLessThan(0.08);
  });
});

const prompt: LocalCount = { texts: 9_000, tools: 1_000, fixed: 40 };
const truth = 1.5 * 10_000 + 40;
const settled = () => {
  let factor = newFactor(1.15);
  for (let at = 0; at < 30; at++) factor = learn(factor, prompt, truth);
  return factor;
};

describe("a report that cannot be true", () => {
  test.each([0, -5, Number.NaN, Number.POSITIVE_INFINITY, truth * 10, truth / 10])(
    "a report of %p that cannot be true teaches nothing",
    (reported) => {
      expect(learnFactor(settled(), prompt, reported, 1)).toBeUndefined();
    },
  );

  test("once among true ones moves the answer by less than 3 %", () => {
    for (const reported of [truth * 2, truth / 2]) {
      const moved = predict(learn(settled(), prompt, reported), prompt);
      expect(Math.abs(moved / truth - 1)).toBeLessThan(0.03);
    }
  });

  test.each([2.6, 0.4])("the factor ends at its bounds where reports are %p times too much for ever", (times) => {
    let factor = newFactor(1.15);
    for (let at = 0; at < 500; at++) factor = learn(factor, prompt, truth * times);
    for (const kind of ["texts", "tools"] as const) {
      expect(factor[kind]).toBeGreaterThanOrEqual(factorBounds[kind][0]);
      expect(factor[kind]).toBeLessThanOrEqual(factorBounds[kind][1]);
    }
    expect(factor.variance.every(Number.isFinite)).toBe(true);
  });

  test("by turns far too much and far too little leaves the factor where it was, with a large error", () => {
    let factor = settled();
    for (let at = 0; at < 100; at++) factor = learn(factor, prompt, at % 2 ? truth * 1.6 : truth / 1.6);
    expect(Math.abs(predict(factor, prompt) / truth - 1)).toBeLessThan(0.15);
    expect(factor.error).toBeGreaterThan(0.2);
    // Nothing certain can be said: no prompt is refused for such a count.
    expect(leastOf(factor, prompt)).toBeLessThan(truth / 2);
  });
});

test("texts and tools get factors of their own once prompts differ in their shares", () => {
  let factor = newFactor(1.15);
  for (let at = 0; at < 40; at++) {
    const local = { texts: 2_000 + 1_500 * (at % 10), tools: 4_000, fixed: 0 };
    factor = learn(factor, local, 1.53 * local.texts + 0.7 * local.tools);
  }
  expect(factor.texts).toBeCloseTo(1.53, 1);
  expect(factor.tools).toBeCloseTo(0.7, 1);
});

test("the least that a model can count is below the truth, and close to it where the factor is good", () => {
  expect(leastOf(settled(), prompt)).toBeWithin(truth * 0.9, truth);
});

test("a model whose tokenizer changes is followed", () => {
  let factor = settled();
  for (let at = 0; at < 30; at++) factor = learn(factor, prompt, 1.1 * 10_000 + 40);
  expect(Math.abs(predict(factor, prompt) / (1.1 * 10_000 + 40) - 1)).toBeLessThan(0.02);
});
