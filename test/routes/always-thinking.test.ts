/**
 * Rows: sessions of several turns with each Claude that always thinks, or takes no forced call, by every client's own
 * package: with a call that is forced, without a word of thinking, and with thinking turned off. Each goes on, and its
 * rows say what was changed.
 */
import { afterAll, describe, expect, test } from "bun:test";
import { demoAccounts, quotas } from "../../src/demo/accounts";
import type { SeenRequest } from "../../src/demo/demo";
import { clientDialects } from "../../src/dialects/hub/conversation";
import { isKnownFor } from "../../src/proxy/upstream/models/known-models";
import { clients, type Question, type Turn } from "../support/clients";
import { startProxy } from "../support/proxy";
import { drawn } from "../support/random";

// biome-ignore lint/suspicious/noExplicitAny: requests as they were sent
type Json = any;

const models = [
  "claude-fable-5",
  "claude-fable-5.1",
  "claude-fable-5.2",
  "claude-mythos-5.1",
  "claude-opus-5.5",
  "claude-sonnet-5.5",
  "claude-haiku-5.5",
];
/** Nobody has it on GitHub Copilot yet: the one that is like it stands in its place. */
const [mythos, fable] = ["claude-mythos-5.1", "claude-fable-5.1"];

const [account] = demoAccounts();
const open = async () => {
  const proxy = await startProxy({
    demo: { accounts: [{ ...account!, plan: "individual_pro", quota: quotas.credits() }], generation: "C" },
  });
  const again = ({ headers, path, method }: SeenRequest, body?: string) => {
    const { host, connection, "content-length": length, ...others } = headers;
    return fetch(proxy.demo.url + path, { method, headers: { ...others, "x-again": "1" }, body });
  };
  const always = Number.POSITIVE_INFINITY;
  proxy.demo.intercept(
    "/models",
    async (seen) => {
      if (seen.headers["x-again"]) return undefined;
      const { data, ...list }: Json = await (await again(seen)).json();
      const like = data.find(({ id }: Json) => id === fable);
      const listed = [...data, { ...like, id: mythos, name: "Claude Mythos 5.1" }].map((model) =>
        models.includes(model.id) ? { ...model, supported_endpoints: ["/v1/messages"] } : model,
      );
      return Response.json({ ...list, data: listed });
    },
    always,
  );
  proxy.demo.intercept(
    "/v1/messages",
    (seen) => {
      const body = seen.body as Json;
      return body.model === mythos ? again(seen, JSON.stringify({ ...body, model: fable })) : undefined;
    },
    always,
  );
  return proxy;
};
const proxy = await open();
afterAll(() => proxy[Symbol.asyncDispose]());

const schema = { type: "object", properties: { to: { type: "string" } }, required: ["to"] };
const tools = [{ name: "send_mail", description: "Sends a mail.", schema }];

/** What the last request says, and what its row says. */
function lastOf() {
  const [row] = proxy.rows(1);
  const { body } = proxy.demo.journal.findLast(({ path, status }) => path === "/v1/messages" && status === 200)!;
  const [fixups, attempts] = [JSON.parse(row!.fixups) as string[], JSON.parse(row!.attempts) as Json[]];
  // Of a translated request, what the client would miss is told apart from the rest.
  const notes = [...fixups, ...JSON.parse(row!.dropped)];
  return { sent: body as Json, status: row!.http_status, notes, attempts: attempts.length };
}

/** Two calls and their results, whole and streamed in turn. @param check Is asked of each request, with what the client said more. */
async function session(
  dialect: keyof typeof clients,
  model: string,
  more: (turn: number) => Partial<Question>,
  check: (said: Partial<Question>, turn: number) => void,
) {
  const client = clients[dialect](proxy.url);
  const turns: Turn[] = [];
  let turn = 0;
  const ask = async () => {
    const said = more(turn);
    const answer = await client[turn % 3 === 0 ? "full" : "stream"]({ turns, tools, ...said }, model);
    check(said, turn++);
    turns.push({ said: answer });
    return answer;
  };
  for (const to of ["Ann", "Ben"]) {
    turns.push({ user: `Call send_mail for ${to}.` });
    const { calls } = await ask();
    expect(calls.map(({ name }) => name)).toEqual(["send_mail"]);
    turns.push({ results: [{ id: calls[0]!.id, text: `Sent to ${to}.` }] });
    expect((await ask()).text).toContain(`Sent to ${to}.`);
  }
}

describe.each(models)("%s", (model) => {
  const alwaysThinks = isKnownFor("alwaysThinks", model);
  /** The table does not say it of Haiku 5.5: its refusal does. */
  const isFree = model !== "claude-fable-5";
  const isKnown = isKnownFor("noForcedCalls", model);
  let refusals = 0;

  test.each(drawn(`forced ${model}`, clientDialects))("a call that is forced, from a client of %s", async (dialect) => {
    await session(
      dialect,
      model,
      (turn) => (turn % 2 === 1 ? {} : { mustCall: turn === 0 ? { tool: "send_mail" } : "any" }),
      ({ mustCall }) => {
        const { sent, status, notes, attempts } = lastOf();
        if (attempts > 1) refusals++;
        expect([status, notes.includes("forced-choice")]).toEqual([200, mustCall !== undefined && isFree]);
        if (mustCall && isFree) {
          expect(sent.tool_choice.type).toBe("auto");
          expect(JSON.stringify(sent.messages.at(-1))).toContain("Answer with a call of");
        } else if (mustCall) expect(sent.tool_choice.type).toMatch(/any|tool/);
        expect(sent.thinking?.type).toBe(alwaysThinks ? "adaptive" : undefined);
      },
    );
    // It is refused once in all sessions, and where the table knows it never.
    expect(refusals).toBe(isFree && !isKnown ? 1 : 0);
  });

  test.each(
    drawn(
      `thinking ${model}`,
      clientDialects.flatMap((dialect) => [
        [dialect, "without a word of thinking", {}],
        [dialect, "with thinking turned off", { mayNotThink: true }],
      ]) as [keyof typeof clients, string, Partial<Question>][],
    ),
  )("a client of %s, %s", async (dialect, _, said) => {
    await session(
      dialect,
      model,
      () => said,
      () => {
        const { sent, status, notes, attempts } = lastOf();
        expect([status, attempts, notes.includes("always-thinks")]).toEqual([200, 1, alwaysThinks]);
        if (alwaysThinks) {
          expect(sent.thinking).toEqual({ type: "adaptive", display: "summarized" });
          expect(sent.output_config).toEqual(said.mayNotThink && { effort: "low" });
        } else expect(sent.thinking?.type).toBeOneOf(said.mayNotThink ? [undefined, "disabled"] : [undefined]);
      },
    );
  });

  test("the simulation refuses what the model does", async () => {
    await clients.messages(proxy.url).full({ turns: [{ user: "Hi" }], tools }, model);
    const { headers, body } = proxy.demo.journal.findLast(({ path }) => path === "/v1/messages")!;
    const { host, connection, "content-length": length, ...others } = headers;
    const ask = async (changes: Json) => {
      const { thinking, ...plain } = body as Json;
      const answer = await fetch(`${proxy.demo.url}/v1/messages`, {
        method: "POST",
        headers: others,
        body: JSON.stringify({ ...plain, ...changes }),
      });
      return answer.ok ? "" : await answer.text();
    };
    const off = /thinking\.type\.disabled.* is not supported/;
    expect(await ask({})).toMatch(alwaysThinks ? off : /^$/);
    expect(await ask({ thinking: { type: "disabled" } })).toMatch(alwaysThinks ? off : /^$/);
    const forced = { tool_choice: { type: "any" }, thinking: { type: "adaptive" } };
    expect(await ask(forced)).toMatch(isFree ? /\\"tool\\" and \\"any\\" are not supported for this model/ : /^$/);
  });
});
