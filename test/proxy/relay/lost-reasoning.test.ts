/**
 * Scenario: what an upstream says of reasoning that it did not show its model is a note of the request, and reaches the
 * client unchanged.
 */
import { afterAll, describe, expect, test } from "bun:test";
import { describeFixup } from "../../../src/admin/pages/request/fixups";
import { demoAccounts, quotas } from "../../../src/demo/accounts";
import { clientDialects } from "../../../src/dialects/hub/conversation";
import { lostReasoningIn } from "../../../src/dialects/hub/lost-reasoning";
import { messages } from "../../../src/dialects/messages/codec";
import { jsonFrame } from "../../../src/lib/net/stream/sse";
import { run } from "../../../src/lib/net/stream/stream";
import { offerOnly } from "../../support/catalogue";
import { clients } from "../../support/clients";
import { startProxy } from "../../support/proxy";
import { reads } from "../../support/streams";

/** As OpenAI sends them (pi 1.6.0, 2026-11): what a turn's end hides from older models is no loss. */
const removed = [
  { type: "reasoning", id: "rs_1", action: "removed", reason: "turn_boundary" },
  { type: "reasoning", id: "rs_2", action: "removed", reason: "prefix_mismatch" },
  { type: "reasoning", id: "rs_3", action: "kept", reason: "another" },
];
/** As Anthropic does (its package for Python, 2026-09). */
const dropped = [
  { type: "thinking_dropped", path: "messages.1.content.0", reason: "organization_binding_mismatch" },
  { type: "thinking_dropped", path: "messages.3.content.0", reason: "organization_binding_mismatch" },
  { type: "thinking_mismatch_allowed", path: "messages.5.content.0", reason: "model_binding_mismatch" },
];
const member = (list: object[]) => `"input_transformations":${JSON.stringify(list)},`;

const [account] = demoAccounts();
/** Puts the lists where the services put them: into the message or its start, and into each state of a response. */
const proxy = await startProxy({
  demo: {
    accounts: [{ ...account!, plan: "individual_pro", quota: quotas.credits() }],
    generation: "C",
    async change(response, path) {
      if (path !== "/v1/messages" && path !== "/responses") return response;
      const text = await response.text();
      const told =
        path === "/responses"
          ? text.replaceAll('"object":"response",', (found) => `${found}${member(removed)}`)
          : text.replace('"type":"message",', (found) => `${found}${member(dropped)}`);
      return new Response(told, response);
    },
  },
});
offerOnly(proxy.demo, { "gpt-6.2-sol": ["/responses"], "claude-sonnet-5.5": ["/v1/messages"] });
afterAll(() => proxy[Symbol.asyncDispose]());

const told = [
  ["gpt-6.2-sol", "responses", "reasoning-lost:prefix_mismatch", removed],
  ["claude-sonnet-5.5", "messages", "reasoning-lost:organization_binding_mismatch", dropped],
] as const;

describe.each(told)("of %s", (model, upstream, note, list) => {
  test.each(clientDialects.flatMap((dialect) => (["full", "stream"] as const).map((mode) => [dialect, mode] as const)))(
    "a client of %s reads it %s",
    async (dialect, mode) => {
      const client = clients[dialect](proxy.url);
      const answer = await client[mode]({ turns: [{ user: "Say hello." }] }, model);
      expect(answer.text).not.toBe("");
      const [row] = proxy.rows(1);
      const notes = JSON.parse(row!.fixups).filter((name: string) => name.startsWith("reasoning-lost"));
      expect([row!.http_status, notes]).toEqual([200, [note]]);
      if (mode === "stream" && dialect === upstream)
        expect(client.frames().some(({ data }) => data?.includes(JSON.stringify(list)))).toBe(true);
    },
  );

  test("a client of the model's API gets the answer with what it says", async () => {
    const turns = [{ role: "user", content: "Say hello." }];
    const body =
      upstream === "messages"
        ? { model, max_tokens: 500, messages: turns }
        : { model, store: false, input: "Say hello." };
    const answer = await proxy.post(`/v1/${upstream}`, body);
    expect(await answer.json()).toMatchObject({ input_transformations: list });
  });

  test("it is told in a sentence, and is no new name", () => {
    const sentence = describeFixup(note, { client_model: model, upstream_model: model });
    expect(sentence).toContain(upstream === "messages" ? "another account received it" : "has changed since");
    expect(JSON.stringify(proxy.app.drift.sightings)).not.toContain("input_transformations");
  });
});

test("a reply of another model that went on replaces what the first one said", () => {
  const frame = (type: string, more: object) => jsonFrame({ type, ...more }, type);
  const message = { id: "msg_1", model: "m", content: [], usage: {}, input_transformations: dropped };
  const end = { delta: { stop_reason: "end_turn" }, usage: {} };
  const reasonsOf = (more: object) =>
    run(reads(messages), [
      frame("message_start", { message }),
      frame("message_delta", { ...end, ...more }),
      frame("message_stop", {}),
    ]).flatMap((event) => (event.type === "finish" ? [event.lostReasoning] : []));
  expect(reasonsOf({})).toEqual([["organization_binding_mismatch"]]);
  expect(reasonsOf({ input_transformations: [] })).toEqual([undefined]);
});

test("a list of any size and form gives a few plain names", () => {
  const odd = [
    null,
    3,
    "x",
    {},
    { type: "thinking_dropped" },
    { type: "thinking_dropped", reason: "a sentence of it" },
  ];
  expect(lostReasoningIn(odd)).toEqual(["undefined", "(no plain name)"]);
  expect(lostReasoningIn("removed")).toEqual([]);
  const many = Array.from({ length: 50_000 }, (_, at) => ({ ...removed[1], reason: `reason_${at}` }));
  expect(lostReasoningIn(many)).toHaveLength(8);
});
