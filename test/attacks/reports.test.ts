/** Scenario: what people reported of others and no other file shows by its name. */
import { afterAll, describe, expect, test } from "bun:test";
import { codecs } from "../../src/dialects/codecs";
import type { ModelFacts } from "../../src/dialects/hub/model";
import { editedTo } from "../../src/lib/net/json/json-edit";
import { ableModel } from "../support/facts";
import { fixRequest } from "../support/noted";
import { startProxy } from "../support/proxy";
import { hasFixture, jsonAt } from "../support/streams";

const proxy = await startProxy();
afterAll(() => proxy[Symbol.asyncDispose]());

const lastTo = (endpoint: string) => proxy.demo.journal.findLast(({ path }) => path === endpoint)!;
describe("once there is thinking in a conversation", () => {
  // Spelt as no serialiser of ours would: every byte before the last turn may be part of what was signed.
  const system = '[ {"type":"text", "text":"Be br\\u0069ef."} ]';
  const turns = (thinking: object) =>
    `[{"role":"user","content":"H\\u00fc"} ,{"role":"assistant", "content":[ ${JSON.stringify(thinking)} ,{"type":"text","text":"1.0e2"}]}, {"role":"user","content":[{"type":"text","text":"And now?"}]}]`;

  test("what was said goes up byte for byte, also when another member is mended", async () => {
    const ask = { model: "claude-sonnet-4.6", max_tokens: 4000, thinking: { type: "enabled", budget_tokens: 1024 } };
    const first = await proxy.post("/v1/messages", { ...ask, messages: [{ role: "user", content: "Hü" }] });
    const { content } = (await first.json()) as { content: { type: string }[] };
    const said = turns(content.find(({ type }) => type === "thinking")!);
    for (const more of ["", '"speed":"fast",']) {
      const head = JSON.stringify(ask).slice(1, -1);
      const before = proxy.demo.journal.length;
      const response = await proxy.post("/v1/messages", `{${more}${head},"system":${system},"messages":${said}}`);
      expect(response.status).toBe(200);
      expect(proxy.demo.journal.length - before).toBe(1);
      const sent = Buffer.from(lastTo("/v1/messages").bytes).toString();
      expect(sent).toContain(`"system":${system}`);
      expect(sent).toContain(`"messages":${said}`);
      expect(sent.includes("speed")).toBe(false);
    }
  });

  test("a proof that does not fit them any more is left out with its block, and the rest is answered", async () => {
    const thinking = {
      type: "thinking",
      thinking: "Something else.",
      signature: "c2lnbmF0dXJlLW9mLWFub3RoZXItcHJlZml4",
    };
    const text = `{"model":"claude-sonnet-4.6","max_tokens":400,"system":${system},"messages":${turns(thinking)}}`;
    expect((await proxy.post("/v1/messages", text)).status).toBe(200);
    const sent = Buffer.from(lastTo("/v1/messages").bytes).toString();
    expect(sent).not.toContain(thinking.signature);
    expect(sent).toContain("1.0e2");
    expect(JSON.parse(proxy.rows()[0]!.attempts)).toHaveLength(2);
  });
});

describe("a refused field is mended, with its name in the history", () => {
  test.each([
    "messages-cache-in-tool-result",
    "messages-cache-scope",
    "messages-context-management",
    "messages-no-prefill",
    "messages-empty-text",
  ])("a refused field is mended, with its name in the history: %s", (folder) => {
    const facts: ModelFacts = {
      ...jsonAt("messages-accepted", "request.json").facts,
      ...older,
      ...(hasFixture(folder, "facts.json") ? jsonAt(folder, "facts.json") : {}),
    };
    const request = jsonAt(folder, "request.json");
    const { body, fixups } = fixRequest(codecs.messages, request, facts);
    expect(fixups).not.toEqual([]);
    const sent = JSON.parse(editedTo(JSON.stringify(request), request, body));
    expect(sent).not.toEqual(request);
    expect(fixRequest(codecs.messages, sent, facts).fixups).toEqual([]);
  });
});

describe("the same system prompt", () => {
  const prompt = "Answer in Latin.";
  const said = { role: "user", content: "Hello" };

  test("a system prompt as a text, a list of texts, a developer's or a system's turn is the same request upstream", async () => {
    const variants = [
      ["/v1/chat/completions", { messages: [{ role: "system", content: prompt }, said] }],
      ["/v1/chat/completions", { messages: [{ role: "developer", content: prompt }, said] }],
      ["/v1/chat/completions", { messages: [{ role: "system", content: [{ type: "text", text: prompt }] }, said] }],
      ["/v1/responses", { instructions: prompt, input: "Hello" }],
      ["/v1/responses", { input: [{ role: "developer", content: prompt }, said] }],
      ["/v1/responses", { input: [{ role: "system", content: [{ type: "input_text", text: prompt }] }, said] }],
    ] as const;
    const sent = [];
    for (const [path, body] of variants) {
      expect((await proxy.post(path, { model: "claude-sonnet-4.6", ...body })).status).toBe(200);
      const { path: endpoint, body: went } = proxy.demo.journal.at(-1)!;
      const { system, messages } = codecs[endpoint === "/v1/messages" ? "messages" : "chat"]
        .decodeRequest(went)
        .turns.reduce(
          (all, turn) => {
            const text = turn.parts.flatMap((part) => (part.kind === "text" ? part.text : [])).join("");
            (turn.role === "system" ? all.system : all.messages).push(text);
            return all;
          },
          { system: [] as string[], messages: [] as string[] },
        );
      sent.push({ system: system.join(""), messages: messages.join("") });
    }
    expect(sent).toEqual(Array(variants.length).fill({ system: prompt, messages: "Hello" }));
  });
});

const claude = ableModel("claude", "Anthropic");
const older: ModelFacts = {
  ...claude,
  dialects: ["messages"],
  limits: { context: 200_000, prompt: 160_000, output: 32_000 },
  supports: { ...claude.supports, structuredOutputs: false, adaptiveThinking: false, efforts: [] },
};
