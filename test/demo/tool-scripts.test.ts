/** Pairs: the scripted model at the tools and the prompts of real clients, as they arrive, from `fixtures/pairs/demo/`. */
import { expect, test } from "bun:test";
import { ownWords, type Tool } from "../../src/demo/parse-prompt";
import { scriptedCalls } from "../../src/demo/tool-scripts";
import { testPairs } from "../support/pairs";

/** The name of a tool, and its texts; `null`: it takes a free text. */
type Given = [name: string, ...texts: string[]] | [name: string, custom: null];

const toolOf = ([name, ...texts]: Given): Tool => {
  const isCustom = texts[0] === null;
  const properties = Object.fromEntries(texts.map((each) => [each, { type: "string" }]));
  const schema = { type: "object", properties, required: texts };
  return { name, kind: isCustom ? "custom" : "function", description: "", schema: isCustom ? undefined : schema };
};

testPairs("demo", {
  /** What a person asks for, what else the client says, and its tools: what is called with what. */
  calls(prompt: string, background: string, ...tools: Given[]) {
    const calls = scriptedCalls({
      ...{ model: "demo", stream: true, prompt, results: [], background: [background], tools: tools.map(toolOf) },
      ...{ choice: "auto", thinks: undefined, effort: undefined, parallel: true, schema: undefined, stops: [] },
      ...{ maxTokens: undefined, images: 0, blocks: [], cacheKey: undefined, weight: prompt.length, toolWeight: 0 },
    });
    return calls.map(({ tool, input }) => [tool.name, input]);
  },
  "own-words": (text: string) => ownWords(text),
});

test("a person's own words stand outside the clients' tags, however many of these are open", () => {
  const unclosed = "<system-reminder>".repeat(100_000);
  expect(ownWords(unclosed)).toBe(unclosed);
});
