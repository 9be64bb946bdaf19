/**
 * Rows: an upstream that calls the model by another name: the reply has the client's name, and no other byte is
 * changed.
 */
import { expect, test } from "bun:test";
import { eventStream } from "../../support/event-stream";
import { startProxy } from "../../support/proxy";

/** Spelt as no serializer of ours would. */
const odd = '"a\\u0041 \\/"';
const replies: [path: string, upstream: string, model: string, body: object, full: string, event: string][] = [
  [
    "/v1/chat/completions",
    "/chat/completions",
    "gpt-5-mini",
    { messages: [{ role: "user", content: "Hi" }] },
    `{ "id":"c1", "object":"chat.completion","created":1,\n"model" : "NAME","choices":[ {"index":0,"message":{"role":"assistant","content":${odd} },"finish_reason":"stop"} ],"usage":{"prompt_tokens":1.0,"completion_tokens":1,"total_tokens":2}}`,
    "",
  ],
  [
    "/v1/responses",
    "/responses",
    "gpt-5.3-codex",
    { input: "Hi" },
    `{ "id":"resp_1", "object":"response","status":"completed",\n"model" : "NAME","output":[ {"type":"message","id":"m1","role":"assistant","content":[{"type":"output_text","text":${odd} }]} ]}`,
    `{ "type":"response.completed", "sequence_number" : 0,"response":RESPONSE }`,
  ],
  [
    "/v1/messages",
    "/v1/messages",
    "claude-sonnet-4.6",
    { max_tokens: 99, messages: [{ role: "user", content: "Hi" }] },
    `{ "id":"msg_1", "type":"message","role":"assistant",\n"model" : "NAME","content":[ {"type":"text","text":${odd} } ],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":1.0,"output_tokens":1}}`,
    "",
  ],
];

test.each(replies)(
  "a full reply at %s names the model that the client asked for",
  async (path, upstream, model, body, full) => {
    await using proxy = await startProxy();
    const text = full.replace("NAME", "their-name-2026");
    proxy.demo.intercept(upstream, () => new Response(text, { headers: { "content-type": "application/json" } }));
    const response = await proxy.post(path, { model, ...body });
    expect(await response.text()).toBe(full.replace("NAME", model));
    expect(JSON.parse(proxy.rows()[0]!.fixups)).toContain("model-name");
  },
);

test.each(replies.filter(([, , , , , event]) => event !== ""))(
  "the last event of a stream at %s",
  async (path, upstream, model, body, full, event) => {
    await using proxy = await startProxy();
    const whole = (name: string) =>
      `event: response.completed\ndata: ${event.replace("RESPONSE", () => full.replace("NAME", name).replace("\n", " "))}\n\n`;
    proxy.demo.intercept(upstream, () => eventStream(whole("their-name-2026")));
    const response = await proxy.post(path, { model, stream: true, ...body });
    expect(await response.text()).toBe(whole(model));
  },
);
