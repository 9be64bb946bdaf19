/** Scenario: model `auto`: GitHub Copilot chooses the model. */
import { describe, expect, test } from "bun:test";
import type { AutoOffer, DemoAccount } from "../../../src/demo/accounts";
import { autoAccounts } from "../../support/auto-accounts";
import { type ProxyOptions, type RunningProxy, startProxy } from "../../support/proxy";
import { until } from "../../support/until";
import { timed } from "./bench";

type Name = keyof ReturnType<typeof autoAccounts>;

/** A proxy whose accounts are these, with what Auto offers them changed. */
function withAccounts(
  names: Name[],
  changes: Partial<Record<Name, Partial<AutoOffer>>> = {},
  options: ProxyOptions = {},
): Promise<RunningProxy> {
  const all: Record<Name, DemoAccount> = autoAccounts();
  const accounts = names.map((name) => ({ ...all[name], auto: { ...all[name].auto!, ...changes[name] } }));
  return knowing(startProxy({ ...options, demo: { ...options.demo, accounts } }));
}

/** The plans are known, as soon after a start. */
async function knowing(started: Promise<RunningProxy>): Promise<RunningProxy> {
  const proxy = await started;
  await Promise.all(proxy.app.accounts.map((account) => account.quota()));
  return proxy;
}

const say = (content: string) => [{ role: "user", content }];
const bodies = {
  chat: { path: "/v1/chat/completions", body: { model: "auto", messages: say("hello") } },
  responses: { path: "/v1/responses", body: { model: "auto", input: "hello" } },
  messages: { path: "/v1/messages", body: { model: "auto", max_tokens: 500, messages: say("hello") } },
  gemini: {
    path: "/v1beta/models/auto:generateContent",
    body: { contents: [{ role: "user", parts: [{ text: "hello" }] }] },
  },
};

const asked = ({ demo }: RunningProxy, path: string | RegExp) =>
  demo.journal.filter(
    (seen) => seen.method === "POST" && (typeof path === "string" ? seen.path === path : path.test(seen.path)),
  );
const generations = (proxy: RunningProxy) => asked(proxy, /^\/(?:chat\/completions|responses|v1\/messages)$/);
const tokenOf = (seen: { headers: Record<string, string> }) => seen.headers["copilot-session-token"];
const rowOf = async (proxy: RunningProxy) => {
  await until(() => proxy.rows().length > 0, "the row is written");
  return proxy.rows()[0]!;
};

describe("in every dialect", () => {
  test.each(Object.entries(bodies))(
    "%s: `auto` is answered by the model that was chosen for the account",
    async (_, { path, body }) => {
      await using proxy = await withAccounts(["pro"], { pro: { pool: ["claude-sonnet-4.6"] } });
      const answer = await proxy.post(path, body);
      expect(answer.status).toBe(200);
      expect(answer.headers.get("x-dragoman-model")).toBe("claude-sonnet-4.6");
      const reply = (await answer.json()) as { model?: string; modelVersion?: string };
      expect(reply.model ?? reply.modelVersion).toBe("auto");
      const [choice] = asked(proxy, "/auto");
      expect(choice?.body).toEqual({ prompt: "hello", has_image: false, hydra_rl_multi_turn: {} });
      const [sent] = generations(proxy);
      expect(tokenOf(sent!)).toStartWith("auto_");
      expect((sent!.body as { model: string }).model).toBe("claude-sonnet-4.6");
      const row = await rowOf(proxy);
      expect(row).toMatchObject({ client_model: "auto", upstream_model: "claude-sonnet-4.6", account_id: "pro-demo" });
      expect(JSON.parse(row.auto!)).toEqual({ by: "auto", why: "code_gen 0.82", discount: 0.1 });
    },
  );

  test.each(Object.entries(bodies))(
    "%s: an account that only serves requests without a model gets none, and the answer says which model served",
    async (_, { path, body }) => {
      await using proxy = await withAccounts(["free"], { free: { pool: ["gpt-5-mini"] } });
      const answer = await proxy.post(path, body);
      expect(answer.status).toBe(200);
      expect(answer.headers.get("x-dragoman-model")).toBe("gpt-5-mini");
      const [sent] = generations(proxy);
      expect(sent?.path).toBe("/chat/completions");
      expect(sent?.body).not.toHaveProperty("model");
      const row = await rowOf(proxy);
      expect(row).toMatchObject({ client_model: "auto", upstream_model: "gpt-5-mini", http_status: 200 });
      expect(JSON.parse(row.auto!)).toEqual({ by: "omission", why: null, discount: null });
    },
  );

  test("a stream without a model names the one that served before its first byte", async () => {
    await using proxy = await withAccounts(["free"], { free: { pool: ["claude-haiku-4.5"] } });
    const answer = await proxy.post("/v1/messages", { ...bodies.messages.body, stream: true });
    expect(answer.headers.get("x-dragoman-model")).toBe("claude-haiku-4.5");
    expect(await answer.text()).toContain('"model":"auto"');
    expect((await rowOf(proxy)).upstream_model).toBe("claude-haiku-4.5");
  });
});

test("an account without the new protocol is served by the old one, which is remembered", async () => {
  await using proxy = await withAccounts(["student"], { student: { protocols: ["session", "omission"] } });
  for (const words of ["one", "two"]) {
    const answer = await proxy.post("/v1/chat/completions", { model: "auto", messages: say(words) });
    expect(answer.status).toBe(200);
  }
  expect(asked(proxy, "/auto")).toHaveLength(1);
  const [intent] = asked(proxy, "/models/session/intent");
  expect(intent?.body).toEqual({
    prompt: "one",
    available_models: ["gpt-5-mini", "claude-haiku-4.5", "gpt-5.4-mini"],
    turn_number: 1,
    prompt_char_count: 3,
  });
  const [first] = generations(proxy);
  expect(tokenOf(first!)).toBe(tokenOf(intent!));
  expect(JSON.parse((await rowOf(proxy)).auto!)).toEqual({ by: "session", why: "needs_reasoning", discount: null });
});

test("a host of an older API version is asked by the old protocol", async () => {
  await using proxy = await withAccounts(
    ["student"],
    {},
    { config: { upstreamHeaders: { "x-github-api-version": "2026-01-09" } } },
  );
  expect((await proxy.post("/v1/chat/completions", bodies.chat.body)).status).toBe(200);
  expect(asked(proxy, "/models/session")).toHaveLength(1);
});

test.each(["later", "unreadable"] as const)(
  "a choice that fails (%s) leads to a request without a model where there is nothing else",
  async (fault) => {
    await using proxy = await withAccounts(["student"], { student: { fault } });
    expect((await proxy.post("/v1/chat/completions", bodies.chat.body)).status).toBe(200);
    expect(asked(proxy, "/models/session")).toHaveLength(0);
    expect(generations(proxy)[0]?.body).not.toHaveProperty("model");
  },
);

test("a choice that fails on another plan is an error that says so, and the next request asks again", async () => {
  await using proxy = await withAccounts(["pro"], { pro: { fault: "later" } });
  const answer = await proxy.post("/v1/chat/completions", bodies.chat.body);
  expect(answer.status).toBe(503);
  expect(answer.headers.get("retry-after")).toBe("10");
  expect(await answer.text()).toContain("Auto could not choose a model now");
  expect(generations(proxy)).toHaveLength(0);
  proxy.demo.accounts[0]!.auto!.fault = undefined;
  expect((await proxy.post("/v1/chat/completions", bodies.chat.body)).status).toBe(200);
});

test("a client that hangs up while the model is chosen leaves a row, and nothing is generated", async () => {
  await using proxy = await withAccounts(["student"], { student: { fault: "silent" } });
  const gone = new AbortController();
  const answer = proxy.post("/v1/chat/completions", bodies.chat.body, { signal: gone.signal }).catch(() => undefined);
  await until(() => asked(proxy, "/auto").length === 1, "Auto is asked");
  gone.abort();
  await answer;
  expect(await rowOf(proxy)).toMatchObject({ http_status: 499, error_type: "client_closed" });
  expect(generations(proxy)).toHaveLength(0);
});

test("an account without Auto is told so, and asked again only six hours later", async () => {
  let hours = 0;
  const monotonic = () => performance.now() + hours * 3_600_000;
  await using proxy = await withAccounts(["pro"], { pro: { protocols: [] } }, { clock: { monotonic } });
  for (hours of [0, 5.9]) {
    const answer = await proxy.post("/v1/chat/completions", bodies.chat.body);
    expect(answer.status).toBe(424);
    expect(await answer.text()).toContain("GitHub Copilot does not offer Auto to pro-demo");
  }
  expect(asked(proxy, "/auto")).toHaveLength(1);
  hours = 6.1;
  await (await proxy.post("/v1/chat/completions", bodies.chat.body)).text();
  expect(asked(proxy, "/auto")).toHaveLength(2);
});

describe("one choice per conversation", () => {
  const turns = (...texts: string[]) =>
    texts.map((content, at) => ({ role: at % 2 === 0 ? "user" : "assistant", content }));
  const send = (proxy: RunningProxy, messages: object[], headers?: Record<string, string>) =>
    proxy.post("/v1/chat/completions", { model: "auto", messages }, { headers });

  test("a conversation keeps its model and its token; another one gets its own", async () => {
    await using proxy = await withAccounts(["pro"]);
    const models: (string | null)[] = [];
    for (const messages of [
      turns("one"),
      turns("one", "yes", "more"),
      turns("other"),
      turns("one", "yes", "more", "yes", "more"),
    ])
      models.push((await send(proxy, messages)).headers.get("x-dragoman-model"));
    expect(models).toEqual(["claude-sonnet-4.6", "claude-sonnet-4.6", "gpt-5-mini", "claude-sonnet-4.6"]);
    expect(asked(proxy, "/auto")).toHaveLength(2);
    const tokens = generations(proxy).map(tokenOf);
    expect(tokens[0]).toBe(tokens[3]);
    expect(tokens[0]).not.toBe(tokens[2]);
  });

  test("an image that the chosen model does not see makes a new choice", async () => {
    await using proxy = await withAccounts(["pro"], { pro: { pool: ["gpt-4", "claude-sonnet-4.6"] } });
    const served = (await send(proxy, turns("one"))).headers.get("x-dragoman-model");
    const url = "data:image/png;base64,iVBORw0KGgo=";
    const picture = [
      { type: "text", text: "what is this?" },
      { type: "image_url", image_url: { url } },
    ];
    const after = await send(proxy, [...turns("one", "yes"), { role: "user", content: picture as never }]);
    expect([served, after.headers.get("x-dragoman-model")]).toEqual(["gpt-4", "claude-sonnet-4.6"]);
    expect(asked(proxy, "/auto").map(({ body }) => (body as { has_image: boolean }).has_image)).toEqual([false, true]);
  });

  test("sessions with the same first words are two conversations", async () => {
    await using proxy = await withAccounts(["pro"]);
    for (const session of ["a", "b", "a"]) await send(proxy, turns("hello"), { "x-session-id": session });
    expect(asked(proxy, "/auto")).toHaveLength(2);
  });

  test("what a client adds to the first turn does not make it another conversation", async () => {
    await using proxy = await withAccounts(["pro"]);
    for (const reminder of ["it is Monday", "it is Tuesday"])
      await proxy.post("/v1/messages", {
        model: "auto",
        max_tokens: 100,
        messages: [
          {
            role: "user",
            content: [
              { type: "text", text: `<system-reminder>${reminder}</system-reminder>` },
              { type: "text", text: "hello" },
            ],
          },
        ],
      });
    expect(asked(proxy, "/auto")).toHaveLength(1);
    expect((asked(proxy, "/auto")[0]!.body as { prompt: string }).prompt).toBe("hello");
  });

  test("what a client adds is told from the person's words in a large request too", async () => {
    await using proxy = await withAccounts(["pro"]);
    for (const reminder of ["it is Monday. ", "it is Tuesday. "])
      await send(proxy, [
        { role: "user", content: `<system-reminder>${reminder.repeat(6_000)}</system-reminder>` },
        { role: "user", content: "hello" },
      ]);
    expect(asked(proxy, "/auto")).toHaveLength(1);
    expect((asked(proxy, "/auto")[0]!.body as { prompt: string }).prompt).toBe("hello");
  });

  test("a conversation that a client has compacted gets a new choice", async () => {
    await using proxy = await withAccounts(["pro"]);
    await send(proxy, turns("one", "yes", "two", "yes", "three"));
    await send(proxy, turns("one", "yes", "summary"));
    expect(asked(proxy, "/auto")).toHaveLength(2);
    await send(proxy, turns("one", "yes", "summary", "yes", "go on"));
    expect(asked(proxy, "/auto")).toHaveLength(2);
  });

  test("a request about the conversation, such as for its title, does not end its choice", async () => {
    await using proxy = await withAccounts(["pro"]);
    await send(proxy, turns("one", "yes", "two"));
    await send(proxy, turns("one"));
    await send(proxy, turns("one", "yes", "two", "yes", "three"));
    expect(asked(proxy, "/auto")).toHaveLength(1);
  });

  test("a summary by the Responses API's own request ends the choice", async () => {
    await using proxy = await withAccounts(["pro"]);
    const input = [{ role: "user", content: "one" }];
    const session = { headers: { "session-id": "codex" } };
    await proxy.post("/v1/responses", { model: "auto", input }, session);
    expect((await proxy.post("/v1/responses/compact", { model: "auto", input }, session)).status).toBe(200);
    expect(asked(proxy, "/auto")).toHaveLength(1);
    await proxy.post("/v1/responses", { model: "auto", input }, session);
    expect(asked(proxy, "/auto")).toHaveLength(2);
  });
});

describe("the upstream's plan of turns", () => {
  /** A conversation in which the person has asked so many times; after a call of a tool, if `isAgents`. */
  const turns = (asked: number, isAgents = false) => {
    const said = Array.from({ length: asked }, (_, at) => [
      ...(at === 0 ? [] : [{ role: "assistant", content: "yes" }]),
      { role: "user", content: `question ${at}` },
    ]).flat();
    const call = { id: "call_1", type: "function", function: { name: "look", arguments: "{}" } };
    return isAgents
      ? [...said, { role: "assistant", tool_calls: [call] }, { role: "tool", tool_call_id: "call_1", content: "found" }]
      : said;
  };
  const send = (proxy: RunningProxy, messages: object[], model = "auto") =>
    proxy.post("/v1/chat/completions", { model, messages });
  const states = (proxy: RunningProxy) =>
    asked(proxy, "/auto").map(({ body }) => (body as { hydra_rl_multi_turn: object }).hydra_rl_multi_turn);
  const state = { state_token: expect.stringMatching(/^hydra_/), advance: true };

  test("a choice stands for as many turns of the person as it says, and the next question brings its state", async () => {
    await using proxy = await withAccounts(["pro"], { pro: { plan: { skip: 1 } } });
    await send(proxy, turns(1));
    await send(proxy, turns(1, true));
    await send(proxy, turns(2));
    await send(proxy, turns(2, true));
    expect(states(proxy)).toEqual([{}]);
    await send(proxy, turns(3));
    expect(states(proxy)).toEqual([{}, state]);
    await send(proxy, turns(3, true));
    expect(states(proxy)).toHaveLength(2);
  });

  test("a state that the upstream does not know any more is left out, once", async () => {
    await using proxy = await withAccounts(["pro"], { pro: { plan: { skip: 0, isForgotten: true } } });
    for (const count of [1, 2]) expect((await send(proxy, turns(count))).status).toBe(200);
    expect(states(proxy)).toEqual([{}, state, {}]);
    expect(asked(proxy, "/models/session")).toHaveLength(0);
  });

  test("a token that ends while a choice stands is renewed without a new turn", async () => {
    let now = Date.now();
    const clock = () => now;
    const changes = { pro: { lifetime: 600, plan: { skip: 2 } } };
    await using proxy = await withAccounts(["pro"], changes, { clock: { now: clock }, demo: { now: clock } });
    await send(proxy, turns(1));
    now += 590_000;
    await send(proxy, turns(2));
    expect(states(proxy)).toEqual([{}, { ...state, advance: false }]);
    await send(proxy, turns(3));
    expect(states(proxy)).toHaveLength(2);
    await send(proxy, turns(4));
    expect(states(proxy)).toHaveLength(3);
  });

  test("a compaction and another tier begin anew, without the state", async () => {
    await using proxy = await withAccounts(["pro"], { pro: { plan: { skip: 7 } } });
    await send(proxy, turns(3));
    await send(proxy, turns(2));
    await send(proxy, turns(2), "auto-efficiency");
    expect(states(proxy)).toEqual([{}, {}, {}]);
  });

  test("where the upstream cannot be asked, the choice that stands goes on", async () => {
    await using proxy = await withAccounts(["pro"], { pro: { plan: { skip: 0 } } });
    await send(proxy, turns(1));
    proxy.demo.accounts[0]!.auto!.fault = "later";
    const answer = await send(proxy, turns(2));
    expect([answer.status, answer.headers.get("x-dragoman-model")]).toEqual([200, "claude-sonnet-4.6"]);
  });

  test("no state is in the log or the history", async () => {
    await using proxy = await withAccounts(["pro"], { pro: { plan: { skip: 0 } } }, { config: { logLevel: "debug" } });
    for (const count of [1, 2]) await send(proxy, turns(count));
    expect(JSON.stringify(proxy.rows()) + proxy.lines.join("\n")).not.toContain("hydra_");
  });
});

describe("tiers", () => {
  const ask = (proxy: RunningProxy, model: string) =>
    proxy.post("/v1/chat/completions", { model, messages: say("hello") });
  const tiers = (proxy: RunningProxy) => asked(proxy, "/auto").map(({ body }) => (body as { tier?: string }).tier);
  const metas = ({ demo }: RunningProxy) => demo.journal.filter(({ path }) => path === "/meta");

  test.each(["efficiency", "intelligence"])("`auto-%s` asks for the tier, and `auto` for none", async (tier) => {
    await using proxy = await withAccounts(["pro"]);
    expect((await ask(proxy, `auto-${tier}`)).status).toBe(200);
    expect((await ask(proxy, "auto")).status).toBe(200);
    expect(tiers(proxy)).toEqual([tier, undefined]);
    expect(metas(proxy)).toHaveLength(1);
  });

  test("the lists offer them", async () => {
    await using proxy = await withAccounts(["pro"]);
    const { data } = (await (await fetch(`${proxy.url}/v1/models`)).json()) as { data: { id: string }[] };
    expect(data.map(({ id }) => id).filter((id) => id.startsWith("auto"))).toEqual([
      "auto",
      "auto-efficiency",
      "auto-intelligence",
    ]);
  });

  test("a tier that the account lacks is served by the default one, which the log says once", async () => {
    await using proxy = await withAccounts(["pro"], { pro: { tiers: ["efficiency", "balance"] } });
    for (let at = 0; at < 2; at++) expect((await ask(proxy, "auto-intelligence")).status).toBe(200);
    expect(tiers(proxy)).toEqual([undefined]);
    expect(proxy.lines.filter((line) => line.includes("Auto's tier intelligence"))).toHaveLength(1);
  });

  test("where nothing lists the tiers, `POST /auto` decides", async () => {
    await using proxy = await withAccounts(["pro"], { pro: { tiers: ["balance"], hasNoMeta: true } });
    expect((await ask(proxy, "auto-intelligence")).status).toBe(200);
    expect(tiers(proxy)).toEqual(["intelligence", undefined]);
    expect(asked(proxy, "/models/session")).toHaveLength(0);
    await using other = await withAccounts(["pro"], { pro: { hasNoMeta: true } });
    expect((await ask(other, "auto-intelligence")).status).toBe(200);
    expect(tiers(other)).toEqual(["intelligence"]);
  });
});

test("a token that has ended is not sent again", async () => {
  let now = Date.now();
  const clock = () => now;
  await using proxy = await withAccounts(
    ["pro"],
    { pro: { lifetime: 600 } },
    { clock: { now: clock }, demo: { now: clock } },
  );
  await proxy.post("/v1/chat/completions", bodies.chat.body);
  now += 590_000;
  expect((await proxy.post("/v1/chat/completions", bodies.chat.body)).status).toBe(200);
  expect(asked(proxy, "/auto")).toHaveLength(2);
  expect(generations(proxy).map(({ status }) => status)).toEqual([200, 200]);
});

test.each([400, 401, 403])(
  "a token that is refused with %i is replaced once, and the request served",
  async (status) => {
    await using proxy = await withAccounts(["pro"]);
    await proxy.post("/v1/chat/completions", bodies.chat.body);
    proxy.demo.intercept(
      /^\/(?:chat\/completions|responses|v1\/messages)$/,
      () => new Response("Invalid Copilot-Session-Token\n", { status }),
    );
    const answer = await proxy.post("/v1/chat/completions", bodies.chat.body);
    expect(answer.status).toBe(200);
    expect(asked(proxy, "/auto")).toHaveLength(2);
    const tokens = generations(proxy).map(tokenOf);
    expect(tokens[1]).toBe(tokens[0]);
    expect(tokens[2]).not.toBe(tokens[1]);
    expect(proxy.app.accounts[0]?.state.name).toBe("ready");
  },
);

test("tokens that are refused again and again end in an error, after two tries", async () => {
  await using proxy = await withAccounts(["pro"]);
  proxy.demo.intercept(
    /^\/(?:chat\/completions|responses|v1\/messages)$/,
    () => new Response("Invalid Copilot-Session-Token\n", { status: 400 }),
    9,
  );
  const answer = await proxy.post("/v1/chat/completions", bodies.chat.body);
  expect(answer.status).toBe(502);
  expect(generations(proxy)).toHaveLength(2);
});

test("a token stays with its account: where that cannot serve, the next account makes its own choice", async () => {
  await using proxy = await withAccounts(["pro", "student"]);
  await proxy.post("/v1/chat/completions", bodies.chat.body);
  proxy.demo.accounts[0]!.quota.premium.remaining = 0;
  const answer = await proxy.post("/v1/chat/completions", bodies.chat.body);
  expect(answer.status).toBe(200);
  const owners = new Map(asked(proxy, "/auto").map((seen) => [seen.account, seen]));
  expect([...owners.keys()]).toEqual(["pro-demo", "student-demo"]);
  const [first, refused, last] = generations(proxy);
  expect([first?.account, refused?.account, last?.account]).toEqual(["pro-demo", "pro-demo", "student-demo"]);
  expect(tokenOf(last!)).not.toBe(tokenOf(first!));
  expect(last?.status).toBe(200);
  expect(proxy.rows()[0]).toMatchObject({ account_id: "student-demo", http_status: 200 });
});

test("of several accounts with a choice for the conversation, the one that served its last turn comes first", async () => {
  const { pro, student } = autoAccounts();
  const auto: AutoOffer = { protocols: ["auto"], pool: ["gpt-6.2-sol"] };
  const accounts = [pro, student].map((account) => ({ ...account, auto }));
  const proxy = await timed({ demo: { accounts, generation: "C" } });
  await using _ = await knowing(Promise.resolve(proxy));
  const messages: object[] = say("hello");
  const turn = async () => {
    const answer = await proxy.post("/v1/chat/completions", { model: "auto", messages });
    expect(answer.status).toBe(200);
    messages.push({ role: "assistant", content: "Hello." }, ...say("Go on."));
    return proxy.rows(1)[0]!.account_id;
  };
  expect([await turn(), await turn()]).toEqual(["pro-demo", "pro-demo"]);
  proxy.app.accounts[0]!.setState({ name: "cooling", until: proxy.now() + 20_000, reason: "For a test." });
  expect(await turn()).toBe("student-demo");
  proxy.pass(20_000);
  expect([await turn(), await turn()]).toEqual(["student-demo", "student-demo"]);
});

test("the upstream refuses another account's token, which is then replaced", async () => {
  await using proxy = await withAccounts(["pro", "student"]);
  await proxy.post("/v1/chat/completions", bodies.chat.body);
  // As if the account had been signed in as somebody else meanwhile.
  proxy.demo.endAutoTokens();
  expect((await proxy.post("/v1/chat/completions", bodies.chat.body)).status).toBe(200);
  expect(generations(proxy).map(({ status }) => status)).toEqual([200, 400, 200]);
});

test("no token and no prompt is in the log or the history", async () => {
  await using proxy = await withAccounts(["pro"], {}, { config: { logLevel: "debug" } });
  await proxy.post("/v1/chat/completions", { model: "auto", messages: say("a very private question") });
  proxy.demo.endAutoTokens();
  await proxy.post("/v1/chat/completions", { model: "auto", messages: say("a very private question") });
  const token = tokenOf(generations(proxy)[0]!)!;
  const kept = JSON.stringify(proxy.rows()) + proxy.lines.join("\n");
  expect(kept).not.toContain(token);
  expect(kept).not.toContain("private question");
});

describe("beside named models", () => {
  test("nobody's named model is moved to Auto, and no choice is asked for", async () => {
    await using proxy = await withAccounts(["pro"]);
    const answer = await proxy.post("/v1/chat/completions", { ...bodies.chat.body, model: "gpt-5-mini" });
    expect(answer.status).toBe(200);
    expect(answer.headers.get("x-dragoman-model")).toBeNull();
    expect(asked(proxy, "/auto")).toHaveLength(0);
    expect(tokenOf(generations(proxy)[0]!)).toBeUndefined();
    expect((await rowOf(proxy)).auto).toBeNull();
  });

  test("a named model goes to the account that takes names, whichever was signed in first", async () => {
    await using proxy = await withAccounts(["student", "pro"]);
    await (await fetch(`${proxy.url}/v1/models`)).text();
    expect((await proxy.post("/v1/chat/completions", { ...bodies.chat.body, model: "gpt-5-mini" })).status).toBe(200);
    expect(generations(proxy).map(({ account }) => account)).toEqual(["pro-demo"]);
  });

  test("an alias that the owner called `auto` keeps its meaning, and other names may mean Auto", async () => {
    const modelAliases = { auto: "gpt-5-mini", cheap: "auto" };
    await using proxy = await withAccounts(["pro"], {}, { config: { modelAliases } });
    await proxy.post("/v1/chat/completions", bodies.chat.body);
    expect(asked(proxy, "/auto")).toHaveLength(0);
    const answer = await proxy.post("/v1/chat/completions", { ...bodies.chat.body, model: "cheap" });
    expect(answer.headers.get("x-dragoman-model")).toBe("claude-sonnet-4.6");
  });

  test("a chain of fallbacks may end in `auto`, whose choice has to suit the request", async () => {
    const fallbacks = { "gpt-5.4": ["auto"] };
    await using proxy = await withAccounts(
      ["pro"],
      { pro: { pool: ["claude-sonnet-4.6"] } },
      { config: { fallbacks } },
    );
    const body = { model: "gpt-5.4", input: "[demo: 429-overloaded once] hello" };
    const answer = await proxy.post("/v1/responses", body);
    expect(answer.status).toBe(200);
    expect(answer.headers.get("x-dragoman-model")).toBe("claude-sonnet-4.6");
    const row = await rowOf(proxy);
    expect(row).toMatchObject({ client_model: "gpt-5.4", upstream_model: "claude-sonnet-4.6" });
    expect(JSON.parse(row.fallbacks!)).toMatchObject([{ model: "gpt-5.4", status: 429 }]);
  });
});

describe("where the plan has nothing else", () => {
  test.each([
    ["chat", 404],
    ["responses", 400],
    ["messages", 424],
    ["gemini", 400],
  ] as const)("%s: a named model gets one sentence that names `auto`, with status %i", async (dialect, status) => {
    await using proxy = await withAccounts(["student"]);
    const { path, body } = bodies[dialect];
    const answer = await proxy.post(
      path.replace("auto", "gpt-5-mini"),
      "model" in body ? { ...body, model: "gpt-5-mini" } : body,
    );
    expect(answer.status).toBe(status);
    expect(answer.headers.get("x-should-retry")).toBe("false");
    expect(await answer.text()).toContain(
      "offers Auto only, where GitHub Copilot chooses the model, so ask for the model `auto`.",
    );
    expect(proxy.app.accounts[0]?.state.name).toBe("ready");
    expect(asked(proxy, "/auto")).toHaveLength(0);
  });

  test("an account whose list picks nothing though names work keeps its names", async () => {
    const changes = { pro: { unpicked: true } };
    await using proxy = await withAccounts(["pro"], changes, { config: { autoWhenOnly: true } });
    for (const model of ["claude-sonnet-4.6", "gpt-5-mini"]) {
      const answer = await proxy.post("/v1/chat/completions", { ...bodies.chat.body, model });
      expect([answer.status, answer.headers.get("x-dragoman-model")]).toEqual([200, null]);
    }
    expect(asked(proxy, "/auto")).toHaveLength(0);
    proxy.demo.intercept(
      "/chat/completions",
      () => Response.json({ error: { code: "model_not_supported", message: "It is not." } }, { status: 400 }),
      1,
    );
    // One refusal among models that serve is one of this model.
    await proxy.post("/v1/chat/completions", { ...bodies.chat.body, model: "gpt-4o" });
    await proxy.post("/v1/chat/completions", { ...bodies.chat.body, model: "gpt-5-mini" });
    expect(proxy.app.catalogue.isAutoOnly(proxy.app.accounts[0]!)).toBe(false);
  });

  test("a plan whose SKU is not stated has nothing but Auto as soon as a name was refused", async () => {
    const student = { ...autoAccounts().student, sku: "" };
    const demo = { accounts: [student] };
    await using proxy = await knowing(startProxy({ demo }));
    const named = { ...bodies.chat.body, model: "gpt-5-mini" };
    const answer = await proxy.post("/v1/chat/completions", named);
    expect(await answer.text()).toContain("so ask for the model `auto`.");
    expect(generations(proxy)).toHaveLength(1);
    await using other = await startProxy({ demo: { accounts: [student] }, config: { autoWhenOnly: true } });
    expect((await other.post("/v1/chat/completions", named)).status).toBe(200);
    expect(asked(other, "/auto")).toHaveLength(1);
  });

  test("a name that nobody lists gets the same sentence", async () => {
    await using proxy = await withAccounts(["student"]);
    const answer = await proxy.post("/v1/chat/completions", { ...bodies.chat.body, model: "claude-opus-99" });
    expect(await answer.text()).toContain("so ask for the model `auto`.");
    expect(await (await fetch(`${proxy.url}/admin/models`)).text()).toContain("offers Auto only");
    await proxy.app.config.change({ autoWhenOnly: true });
    expect(await (await fetch(`${proxy.url}/admin/models`)).text()).not.toContain("offers Auto only");
  });

  test("with `autoWhenOnly` every name means `auto` there", async () => {
    await using proxy = await withAccounts(["student"], {}, { config: { autoWhenOnly: true } });
    for (const model of ["gpt-5.4", "claude-opus-99"]) {
      const answer = await proxy.post("/v1/chat/completions", { ...bodies.chat.body, model });
      expect(answer.status).toBe(200);
      expect(((await answer.json()) as { model: string }).model).toBe(model);
    }
    expect(proxy.rows().map(({ client_model, upstream_model }) => [client_model, upstream_model])).toEqual([
      ["claude-opus-99", "gpt-5-mini"],
      ["gpt-5.4", "gpt-5-mini"],
    ]);
  });

  test("with `autoWhenOnly` names keep their meaning where one account takes them", async () => {
    await using proxy = await withAccounts(["student", "pro"], {}, { config: { autoWhenOnly: true } });
    await proxy.post("/v1/chat/completions", { ...bodies.chat.body, model: "gpt-5-mini" });
    expect(asked(proxy, "/auto")).toHaveLength(0);
    expect((await rowOf(proxy)).account_id).toBe("pro-demo");
  });
});

describe("what a key may use", () => {
  const keyed = (models: string[]) => ({
    config: { auth: { apiKeys: [{ name: "limited", key: "k".repeat(20), models }] } },
  });
  const headers = { authorization: `Bearer ${"k".repeat(20)}` };
  const ask = (proxy: RunningProxy) => proxy.post("/v1/chat/completions", bodies.chat.body, { headers });

  test("the old protocol is offered only what the key may use", async () => {
    await using proxy = await withAccounts(["student"], { student: { protocols: ["session"] } }, keyed(["claude-*"]));
    expect((await ask(proxy)).headers.get("x-dragoman-model")).toBe("claude-haiku-4.5");
    expect(
      (asked(proxy, "/models/session/intent")[0]!.body as { available_models: string[] }).available_models,
    ).toEqual(["claude-haiku-4.5"]);
  });

  test("what the new protocol chose is refused to a key that may not use it", async () => {
    await using proxy = await withAccounts(["pro"], {}, keyed(["gpt-*"]));
    const answer = await ask(proxy);
    expect(answer.status).toBe(403);
    expect(await answer.text()).toContain("Auto chose `claude-sonnet-4.6`");
    expect(generations(proxy)).toHaveLength(0);
  });

  test("a key with limits is served without a model only if it may use whichever serves", async () => {
    await using proxy = await withAccounts(["free"], {}, keyed(["gpt-*"]));
    expect((await ask(proxy)).status).toBe(424);
    expect(generations(proxy)).toHaveLength(0);
  });

  test("a key that may use `auto` and nothing else may use what it chooses", async () => {
    await using proxy = await withAccounts(["pro"], {}, keyed(["auto"]));
    expect((await ask(proxy)).headers.get("x-dragoman-model")).toBe("claude-sonnet-4.6");
    const named = await proxy.post(
      "/v1/chat/completions",
      { ...bodies.chat.body, model: "claude-sonnet-4.6" },
      { headers },
    );
    expect(named.status).toBe(403);
  });
});

const budget = (limit: number, more: object = {}) => ({
  config: { budgets: [{ name: "all", limit, unit: "premium", per: "day", ...more }] },
});

test("a request whose model is not known yet counts as the dearest that may serve", async () => {
  // The dearest of this list costs 0.33; the one that would serve costs nothing.
  await using proxy = await withAccounts(["free"], { free: { pool: ["gpt-5-mini"] } }, budget(0.2));
  const answer = await proxy.post("/v1/chat/completions", bodies.chat.body);
  expect(answer.status).toBe(429);
  expect(generations(proxy)).toHaveLength(0);
});

test("what it cost is counted by the model that served", async () => {
  await using proxy = await withAccounts(["free"], { free: { pool: ["claude-haiku-4.5"] } }, budget(10));
  const answer = await proxy.post("/v1/chat/completions", bodies.chat.body);
  expect(answer.status).toBe(200);
  await answer.text();
  expect(await rowOf(proxy)).toMatchObject({ cost: 0.33e9, cost_unit: "premium" });
  expect(await proxy.app.budgets.overview()).toMatchObject([{ used: 0.33 }]);
});

test("a budget for certain models counts what Auto chose where that is known, and else only if it names `auto`", async () => {
  for (const [name, model, pattern, used] of [
    ["pro", "claude-sonnet-4.6", "claude-*", 1],
    ["free", "claude-haiku-4.5", "claude-*", 0],
    ["free", "claude-haiku-4.5", "auto", 0.33],
  ] as const) {
    await using proxy = await withAccounts(
      [name],
      { [name]: { pool: [model] } },
      budget(10, { scope: { model: pattern } }),
    );
    await (await proxy.post("/v1/chat/completions", bodies.chat.body)).text();
    expect([name, pattern, await proxy.app.budgets.overview()]).toMatchObject([name, pattern, [{ used }]]);
  }
});
