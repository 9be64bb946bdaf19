/** Scenario: what people reported of others and no other file shows by its name. */
import { afterAll, expect, test } from "bun:test";
import { startProxy } from "../support/proxy";

const proxy = await startProxy();
afterAll(() => proxy[Symbol.asyncDispose]());

const lastTo = (endpoint: string) => proxy.demo.journal.findLast(({ path }) => path === endpoint)!;
// Spelt as no serialiser of ours would: every byte before the last turn may be part of what was signed.
const system = '[ {"type":"text", "text":"Be br\\u0069ef."} ]';
const turns = (thinking: object) =>
  `[{"role":"user","content":"H\\u00fc"} ,{"role":"assistant", "content":[ ${JSON.stringify(thinking)} ,{"type":"text","text":"1.0e2"}]}, {"role":"user","content":[{"type":"text","text":"And now?"}]}]`;

test("once there is thinking in a conversation, what was said goes up byte for byte, also when another member is mended", async () => {
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

test("a proof that does not fit the conversation any more is left out with its block, and the rest is answered", async () => {
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
