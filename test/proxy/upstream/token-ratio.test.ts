/**
 * Rows: what is learnt of a model's tokenizer: within what bounds, how soon, and that nothing a broken upstream reports
 * spoils it.
 */
import { afterAll, expect, test } from "bun:test";
import { factorsOf } from "../../../src/demo/scripted-replies";
import { type LocalCount, learnRatio, ratioBounds, type TokenRatio } from "../../../src/proxy/tokens/token-ratio";
import { chinese, pieces } from "../../support/corpus";
import { plainTokens } from "../../support/model-tokenizer";
import { sharedTokenizer } from "../../support/tokenizer";

const tokenizer = sharedTokenizer();
afterAll(() => tokenizer.close());

const unknown: TokenRatio = { ratio: 1.15, requests: 0 };
const learn = (ratio: TokenRatio, local: LocalCount, reported: number) => learnRatio(ratio, local, reported) ?? ratio;
const predict = ({ ratio }: TokenRatio, { tokens, fixed }: LocalCount) => ratio * tokens + fixed;

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
  const requests: { local: LocalCount; reported: number }[] = [];
  for (let at = 0; at < count; at++) {
    if (at % 9 === 0) history = pieces.slice(0, 3);
    history.push(pieces[(at * 37) % pieces.length]!, at % 5 === 0 ? chinese : pieces[(at * 53) % pieces.length]!);
    let texts = 0;
    for (const text of history) texts += await localTokens(text);
    const size = history.reduce((sum, text) => sum + plainTokens(text), 0);
    requests.push({
      local: { tokens: texts + toolTokens, fixed: 4 * history.length },
      reported: Math.ceil(size * ofTexts + plainTokens(tools) * ofTools + 4 * history.length),
    });
  }
  return requests;
}

const toolList = JSON.stringify(
  pieces.slice(0, 12).map((text, at) => ({
    name: `tool_${at}`,
    description: text.slice(0, 1200),
    input_schema: { type: "object", properties: { path: { type: "string", description: text.slice(1200, 1500) } } },
  })),
);

test.each([
  ["gpt-5.4", "with tools", toolList],
  ["gpt-5.4", "without tools", ""],
  ["claude-sonnet-4.6", "with tools", toolList],
  ["claude-opus-4.8", "with tools", toolList],
  ["claude-opus-4.8", "without tools", ""],
  ["gemini-3.5-flash", "with tools", toolList],
])("after 10 requests a prediction is within 6 % of %s's own count, %s", async (model, _, tools) => {
  let ratio = unknown;
  const offs: number[] = [];
  for (const [at, { local, reported }] of (await corpus(model, 60, tools)).entries()) {
    if (at >= 10) offs.push(predict(ratio, local) / reported - 1);
    ratio = learn(ratio, local, reported);
  }
  expect(Math.min(...offs)).toBeGreaterThan(-0.06);
  expect(Math.max(...offs)).toBeLessThan(0.06);
});

const prompt: LocalCount = { tokens: 10_000, fixed: 40 };
const truth = 1.5 * 10_000 + 40;
const settled = () => {
  let ratio = unknown;
  for (let at = 0; at < 60; at++) ratio = learn(ratio, prompt, truth);
  return ratio;
};

test.each([0, -5, Number.NaN, Number.POSITIVE_INFINITY, truth * 10, truth / 10])(
  "a report of %p that cannot be true teaches nothing",
  (reported) => {
    expect(learnRatio(settled(), prompt, reported)).toBeUndefined();
  },
);

test("a report that cannot be true once among true ones moves the answer by less than 3 %, and the very first one by 10 %", () => {
  for (const reported of [truth * 2, truth / 2]) {
    const moved = predict(learn(settled(), prompt, reported), prompt);
    expect(Math.abs(moved / truth - 1)).toBeLessThan(0.03);
    expect(Math.abs(learn(unknown, prompt, reported).ratio / unknown.ratio - 1)).toBeLessThan(0.1001);
  }
});

test.each([2.6, 0.3])("the ratio ends at its bounds where reports are %p times too much for ever", (times) => {
  let ratio = unknown;
  for (let at = 0; at < 500; at++) ratio = learn(ratio, prompt, truth * times);
  expect(ratio.ratio).toBe(ratioBounds[times > 1 ? 1 : 0]);
});

test("a report that is by turns far too much and far too little leaves the ratio where it was", () => {
  let ratio = settled();
  for (let at = 0; at < 100; at++) ratio = learn(ratio, prompt, at % 2 ? truth * 1.6 : truth / 1.6);
  expect(Math.abs(predict(ratio, prompt) / truth - 1)).toBeLessThan(0.15);
});

test("a model whose tokenizer changes is followed", () => {
  let ratio = settled();
  for (let at = 0; at < 40; at++) ratio = learn(ratio, prompt, 1.1 * 10_000 + 40);
  expect(Math.abs(predict(ratio, prompt) / (1.1 * 10_000 + 40) - 1)).toBeLessThan(0.02);
});
