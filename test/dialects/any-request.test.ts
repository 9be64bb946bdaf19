/**
 * Property: whatever a client asks an upstream of its own dialect, the upstream gets the same through the hub and around it,
 * and nothing of it needs a fixup a second time.
 */
import { expect, test } from "bun:test";
import { codecs } from "../../src/dialects/codecs";
import { type Dialect, dialects, type JsonObject } from "../../src/dialects/hub/conversation";
import type { ModelFacts } from "../../src/dialects/hub/model";
import { ProxyError } from "../../src/lib/errors";
import { isObject } from "../../src/lib/json";
import { ableModel } from "../support/facts";
import { messageMeaning } from "../support/message-meaning";
import { fixRequest } from "../support/noted";
import fc, { triesOf } from "../support/random";
import { requests } from "../support/requests";

const able = ableModel("some-model", "Anthropic");
const like = (supports: Partial<ModelFacts["supports"]>, more: Partial<ModelFacts> = {}): ModelFacts => ({
  ...able,
  limits: { output: 32_000 },
  ...more,
  supports: { ...able.supports, ...supports },
});
const still = { adaptiveThinking: false, thinkingBudget: undefined };
const thinkingBudget = { min: 1024, max: 32_000 };
const gpt = { vendor: "Azure OpenAI", dialects: ["chat" as const], limits: { output: 16_384 } };

const models: Record<Dialect, ModelFacts[]> = {
  chat: [
    like({ ...still, efforts: ["none", "low", "high"], thinkingBudget }, gpt),
    like(still, gpt),
    like({ ...still, completionTokens: true }, { ...gpt, vendor: "OpenAI" }),
    like(
      { ...still, efforts: [], thinkingBudget },
      { ...gpt, vendor: "Anthropic", limits: { output: 32_000, fullOutput: 16_000 } },
    ),
    like(still, { ...gpt, vendor: "Google" }),
  ],
  responses: [
    like(
      { ...still, efforts: ["none", "low", "max"] },
      { vendor: "Azure OpenAI", dialects: ["responses"], limits: {} },
    ),
  ],
  messages: [
    like({}),
    like({ adaptiveThinking: false, efforts: [] }),
    like({ thinkingBudget: undefined }),
    like({ thinkingBudget: undefined, systemTurns: true, eagerInput: true }),
    like({ thinkingBudget: undefined, alwaysThinks: true, noForcedCalls: true }),
    like({ ...still, structuredOutputs: false }, { limits: {} }),
  ],
};

/** The request without what means the same either way. */
const meanings: Record<Dialect, (body: JsonObject) => unknown> = {
  /** `n` of 1, members that are null, how to use no tools, the usage that every stream is asked for. */
  chat(body) {
    const said = JSON.parse(JSON.stringify(body), (name, value) =>
      value === null || (name === "n" && value === 1) || name === "stream_options" ? undefined : value,
    ) as JsonObject;
    if (Array.isArray(said.tools) && said.tools.length > 0) return said;
    const { tools: _, parallel_tool_calls: __, tool_choice: choice, ...rest } = said;
    return choice === undefined || choice === "auto" || choice === "none" ? rest : { ...rest, tool_choice: choice };
  },
  /** Members that are null, and the forms of {@link meaningOfItem}. */
  responses: ({ input, tools, text, reasoning, ...others }) => ({
    ...spoken({ ...others, stream: others.stream ?? false }),
    text: isObject(text) ? spoken({ ...text, format: isObject(text.format) ? spoken(text.format) : undefined }) : {},
    reasoning: isObject(reasoning) ? spoken(reasoning) : {},
    tools: Array.isArray(tools) ? tools.map(meaningOfTool) : [],
    input: (typeof input === "string" ? [{ role: "user", content: input }] : (input as JsonObject[])).map(
      meaningOfItem,
    ),
  }),
  messages: (body) => spoken(messageMeaning(body)),
};

const spoken = (object: JsonObject): JsonObject =>
  Object.fromEntries(Object.entries(object).filter(([key, value]) => value != null || key.startsWith("x_")));

function meaningOfItem(item: JsonObject): JsonObject {
  if (item.type === "additional_tools") return { ...item, tools: (item.tools as JsonObject[]).map(meaningOfTool) };
  if (item.type === "message" || (item.type === undefined && "role" in item)) {
    // A string is one text; the type of a message may be left out.
    const { role, content } = item;
    const type = role === "assistant" ? "output_text" : "input_text";
    const parts =
      typeof content === "string" ? [{ type, text: content }] : (content as JsonObject[]).map(meaningOfPart);
    return { ...item, type: "message", content: parts };
  }
  if (!Array.isArray(item.output)) return item;
  // One plain text is a string, nothing is an empty one.
  const parts: JsonObject[] = item.output.map(meaningOfPart);
  const [first = { type: "input_text", text: "" }] = parts;
  const isPlain = parts.length < 2 && first.type === "input_text" && Object.keys(first).length === 2;
  return { ...item, output: isPlain ? first.text : parts };
}

/** Empty annotations say nothing. */
const meaningOfPart = ({ annotations, ...part }: JsonObject): JsonObject => part;

/** A schema that is not there, or names no properties, allows any. */
function meaningOfTool(tool: JsonObject): JsonObject {
  if (tool.type === "namespace") return { ...tool, tools: (tool.tools as JsonObject[]).map(meaningOfTool) };
  if (tool.type !== "function") return tool;
  return spoken({ ...tool, parameters: { properties: {}, ...(tool.parameters ?? { type: "object" }) } });
}

const tries: Record<Dialect, number> = { chat: 600, responses: 1500, messages: 500 };
const copied = (body: JsonObject): JsonObject => JSON.parse(JSON.stringify(body));

test.each(dialects)(
  "a request of %s is the same at the upstream through the hub and around it, and is fixed once",
  (dialect) => {
    const codec = codecs[dialect];
    const meaning = meanings[dialect];
    let same = 0;
    fc.assert(
      fc.property(requests[dialect], fc.constantFrom(...models[dialect]), (given, model) => {
        const around = fixRequest(codec, copied(given), model).body;
        expect(fixRequest(codec, around, model).fixups).toEqual([]);
        try {
          const hub = codec.encodeRequest(codec.decodeRequest(copied(given)), model, { webSearch: true });
          expect(fixRequest(codec, hub, model).fixups).toEqual([]);
          // Another vendor's model gets no words of OpenAI's that were translated for it.
          if (dialect === "chat" && !model.vendor.includes("OpenAI")) return;
          expect(meaning(hub)).toEqual(meaning(around));
          same++;
        } catch (thrown) {
          // What the model cannot do is refused.
          if (!(thrown instanceof ProxyError)) throw thrown;
        }
      }),
      { numRuns: triesOf(tries[dialect]) },
    );
    expect(same, "requests that were compared").toBeGreaterThan(30);
  },
);
