/**
 * Rows: a conversation that changes its model midway: with its thinking, its proofs and its tool calls it goes on at
 * every other upstream, and when it comes back, the first model gets its own proof again.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { demoAccounts, quotas } from "../../../src/demo/accounts";
import { dialects } from "../../../src/dialects/hub/conversation";
import { offerOnly } from "../../support/catalogue";
import { type Client, clients, type Question, type Turn } from "../../support/clients";
import { tap } from "../../support/log-capture";
import { startProxy } from "../../support/proxy";
import { drawn } from "../../support/random";
import { weather } from "../../support/scenarios";

const makers = {
  chat: ["claude-opus-4.6", "/chat/completions"],
  responses: ["gpt-5.3-codex", "/responses"],
  messages: ["claude-sonnet-4.6", "/v1/messages"],
} as const;

const [account] = demoAccounts();
const proxy = await startProxy({ demo: { accounts: [{ ...account!, quota: quotas.unlimited() }] } });
const upstream = tap(proxy.demo);
offerOnly(proxy.demo, Object.fromEntries(Object.values(makers).map(([model, endpoint]) => [model, [endpoint]])));
afterAll(() => proxy[Symbol.asyncDispose]());

const pairs = dialects.flatMap((first) =>
  dialects.filter((second) => second !== first).map((second) => [first, second] as const),
);

describe.each([...dialects])("a client of %s", (dialect) => {
  let client: Client;
  beforeAll(() => {
    client = clients[dialect](proxy.url);
  });

  describe.each(["full", "stream"] as const)("(%s)", (mode) => {
    test.each(drawn(`${dialect} ${mode}`, pairs, 2))("goes from %s to %s and back", async (first, second) => {
      const turns: Turn[] = [];
      const say = async (model: string, ...more: Turn[]) => {
        turns.push(...more);
        const question: Question = { turns: [...turns], tools: [weather], think: true, maxTokens: 8000 };
        const answer = await client[mode](question, model);
        turns.push({ said: answer });
        return { answer, proofs: proofsIn(await upstream.bytes()), sent: proofsIn(bodySent()) };
      };

      const one = await say(makers[first][0], { user: "What is the weather in Paris?" });
      expect(one.proofs).toHaveLength(1);
      const [call] = one.answer.calls;
      const results = [{ id: call!.id, text: "18 degrees, sunny" }];

      // In the middle of the tool loop, where providers are strictest.
      const two = await say(makers[second][0], { results });
      expect(two.answer.text).toContain("18 degrees, sunny");
      expect(two.sent).toEqual([]);
      const { fixups, dropped } = proxy.rows()[0]!;
      // To an upstream of the client's own dialect it is a mend, otherwise a word that dialect does not have.
      if (second === dialect) expect(JSON.parse(fixups)).toContain("foreign-thinking");
      else expect(JSON.parse(dropped)).toContain("thinking");

      const three = await say(makers[first][0], { user: "And what is the weather in Paris now?" });
      expect(three.answer.calls).toMatchObject([{ name: "get_weather" }]);
      expect(three.sent).toEqual(one.proofs);

      const back = await say(makers[first][0], { results: [{ id: three.answer.calls[0]!.id, text: "19 degrees" }] });
      expect(back.answer.text).toContain("19 degrees");
      expect(back.sent).toEqual([...one.proofs, ...three.proofs]);
    });
  });
});

const bodySent = (): string => new TextDecoder().decode(upstream.seen().bytes);

/** The proofs of thinking in a request or an answer, each once, whatever its dialect. */
function proofsIn(text: string): string[] {
  const found = text.matchAll(/"(?:signature|encrypted_content|reasoning_opaque)":"([^"]+)"/g);
  return [...new Set([...found].map(([, proof]) => proof!))];
}
