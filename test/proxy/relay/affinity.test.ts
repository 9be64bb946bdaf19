/**
 * Scenario: a conversation goes back to the account that made what is replayed in it; a session does where the owner
 * wants it so.
 */
import { describe, expect, test } from "bun:test";
import { startDemo } from "../../../src/demo/demo";
import { Account } from "../../../src/people/accounts/account";
import { openAffinity } from "../../../src/people/accounts/affinity";
import { handClock, hostsOf, keptLog, savedFrom } from "../../people/accounts/bench";
import type { RunningProxy } from "../../support/proxy";
import { timed } from "./bench";

const two = { accounts: ["octo-demo", "work-demo"] };
const codex = "gpt-5.3-codex";
const user = (text: string) => ({ type: "message", role: "user", content: [{ type: "input_text", text }] });
const thinking = { reasoning: { effort: "high" }, include: ["reasoning.encrypted_content"], store: false };

async function respond(proxy: RunningProxy, input: object[], stream = false, model = codex): Promise<object[]> {
  const response = await proxy.post("/v1/responses", { model, input, stream, ...thinking });
  expect(response.status).toBe(200);
  const text = await response.text();
  const body = stream ? JSON.parse(/response\.completed\ndata: (.*)/.exec(text)![1]!).response : JSON.parse(text);
  return body.output;
}

const servedBy = (proxy: RunningProxy) => proxy.rows()[0]!.account_id!.replace("-demo", "");
/** For 20 s. */
const rest = (proxy: RunningProxy, at: number) =>
  proxy.app.accounts[at]!.setState({ name: "cooling", until: proxy.app.now() + 20_000, reason: "For a test." });

describe("what is replayed", () => {
  test.each([false, true])(
    "goes to its maker, though another account comes first in order (streamed: %p)",
    async (stream) => {
      await using proxy = await timed(two);
      rest(proxy, 0);
      const first = await respond(proxy, [user("Think about it.")], stream);
      expect(servedBy(proxy)).toBe("work");
      proxy.pass(20_000);
      await respond(proxy, [user("Something else.")]);
      expect(servedBy(proxy)).toBe("octo");
      const history = [user("Think about it."), ...first, user("Again.")];
      await respond(proxy, history, stream);
      expect(servedBy(proxy)).toBe("work");
      expect(JSON.parse(proxy.rows()[0]!.attempts).length).toBe(1);
      expect(proxy.rows()[0]!.fixups).not.toContain("foreign-items");
    },
  );

  test("in another dialect, packed, as well", async () => {
    await using proxy = await timed(two);
    const send = async (messages: object[]) => {
      const response = await proxy.post("/v1/messages", {
        model: codex,
        max_tokens: 4000,
        thinking: { type: "enabled", budget_tokens: 2000 },
        messages,
      });
      expect(response.status).toBe(200);
      return ((await response.json()) as { content: { type: string }[] }).content;
    };
    const person = { role: "user", content: "Think about it." };
    rest(proxy, 0);
    const content = await send([person]);
    expect(content[0]!.type).toMatch(/thinking/);
    proxy.pass(20_000);
    await send([person, { role: "assistant", content }, { role: "user", content: "Again." }]);
    expect(servedBy(proxy)).toBe("work");
  });

  test("when its maker cannot serve, another account does without it; from then on the conversation is there", async () => {
    await using proxy = await timed(two);
    const history: object[] = [user("Think about it.")];
    const turn = async (text: string) => {
      history.push(...(await respond(proxy, history)), user(text));
      return servedBy(proxy);
    };
    expect(await turn("Think again.")).toBe("octo");
    expect(await turn("And think again.")).toBe("octo");
    rest(proxy, 0);
    expect(await turn("Think once more.")).toBe("work");
    expect(proxy.rows()[0]!.fixups).toContain("foreign-items");
    proxy.pass(20_000);
    expect(proxy.app.accounts[0]!.state.name).toBe("ready");
    expect(await turn("Think a last time.")).toBe("work");
  });

  test("a conversation without proofs keeps the order", async () => {
    await using proxy = await timed(two);
    rest(proxy, 0);
    await respond(proxy, [user("Think about it.")]);
    proxy.pass(20_000);
    await respond(proxy, [
      user("Hello."),
      { type: "message", role: "assistant", content: [{ type: "output_text", text: "Hi" }] },
      user("Bye"),
    ]);
    expect(servedBy(proxy)).toBe("octo");
  });
});

describe("a session", () => {
  const say = (proxy: RunningProxy, headers: Record<string, string>, more: object = {}) =>
    proxy
      .post(
        "/v1/chat/completions",
        { model: "gpt-5-mini", messages: [{ role: "user", content: "Hi" }], ...more },
        { headers },
      )
      .then(() => servedBy(proxy));

  test.each([
    [{ "x-claude-code-session-id": "s-1" }, {}],
    [{ "session-id": "s-1" }, {}],
    [{ "x-session-affinity": "s-1" }, {}],
    [{ "x-session-id": "s-1" }, {}],
    [{}, { prompt_cache_key: "s-1" }],
  ])("a session stays with its account when `accountAffinity` is on: %j %j", async (headers, more) => {
    await using proxy = await timed({ ...two, config: { accountAffinity: true } });
    const mine = await say(proxy, headers, more);
    const others = [];
    for (let turn = 0; turn < 4; turn++) {
      others.push(await say(proxy, {}));
      expect(await say(proxy, headers, more)).toBe(mine);
    }
    expect(others.length).toBe(4);
  });

  test("a session takes turns like any other request when it is off", async () => {
    await using proxy = await timed(two);
    const headers = { "x-session-id": "s-1" };
    expect([await say(proxy, headers), await say(proxy, headers)]).toEqual(["octo", "work"]);
  });

  test("moves when its account cannot serve, and stays where it went", async () => {
    await using proxy = await timed({ ...two, config: { accountAffinity: true } });
    const headers = { "x-session-id": "s-1" };
    expect(await say(proxy, headers)).toBe("octo");
    rest(proxy, 0);
    expect(await say(proxy, headers)).toBe("work");
    proxy.pass(20_000);
    for (let turn = 0; turn < 3; turn++) expect(await say(proxy, headers)).toBe("work");
  });
});

test("the memory is bounded: the oldest is forgotten first, and what is learnt again counts as new", async () => {
  const demo = startDemo();
  const { logger } = keptLog();
  const [octo, work] = demo.accounts.map(
    (account) => new Account(savedFrom(account), { hosts: hostsOf(demo), version: "1", logger, ...handClock() }),
  );
  const accounts = [octo!, work!];
  const affinity = openAffinity(3);
  for (const mark of ["a", "b", "c"]) affinity.remember(mark, octo!);
  affinity.remember("a", work!);
  affinity.remember("d", work!);
  expect(["a", "b", "c", "d"].map((mark) => affinity.accountFor([mark], accounts)?.id)).toEqual([
    "work-demo",
    undefined,
    "octo-demo",
    "work-demo",
  ]);
  expect(affinity.accountFor(["unknown", "c", "d"], accounts)).toBe(octo!);
  expect(affinity.accountFor(["c"], [work!, work!])).toBeUndefined(); // signed out meanwhile
  await demo.stop();
});
