/** Scenario: which account serves, what happens when one cannot, and what the client is told when none can. */
import { expect, test } from "bun:test";
import { endOf } from "../../../src/people/accounts/account-state";
import { type RunningProxy, startProxy } from "../../support/proxy";
import { until } from "../../support/until";
import { timed } from "./bench";

const all = ["octo-demo", "work-demo", "plus-demo"];
const premium = "claude-sonnet-4.6";
const free = "gpt-5-mini";
const ask = (content = "Hello", model = premium) => ({ model, messages: [{ role: "user", content }] });
const chat = "/chat/completions";

interface Answer {
  status: number;
  headers: Headers;
  error: { message: string; code: string; type: string };
}

async function post(proxy: RunningProxy, content?: string, model?: string): Promise<Answer> {
  const response = await proxy.post("/v1/chat/completions", ask(content, model));
  const body = (await response.json()) as Answer;
  return { status: response.status, headers: response.headers, error: body.error };
}

/** Who was asked, in order; the newest request's tries when there were several. */
const asked = ({ demo }: RunningProxy, path = chat) =>
  demo.journal.filter((seen) => seen.path === path).map(({ account }) => account!.replace("-demo", ""));
const tries = (proxy: RunningProxy) => {
  const attempts = JSON.parse(proxy.rows()[0]!.attempts) as { account: string; status?: number }[];
  return attempts.map(({ account, status }) => `${account.replace("-demo", "")} ${status}`);
};
const states = ({ app }: RunningProxy) => app.accounts.map(({ state }) => state.name);
/** The upstream's answer in its JSON form. */
const refuse = (status: number, code: string, message = "Told by GitHub.", headers: Record<string, string> = {}) =>
  Response.json({ error: { code, message } }, { status, headers });
const always = Number.POSITIVE_INFINITY;

test("a quota that ends in the middle of a request lets the next account serve that request, and from then on the next ones", async () => {
  await using proxy = await startProxy({ accounts: all });
  proxy.demo.accounts[0]!.quota.premium.remaining = 0;
  expect((await post(proxy)).status).toBe(200);
  expect(tries(proxy)).toEqual(["octo 402", "work 200"]);
  for (let turn = 0; turn < 3; turn++) await post(proxy);
  expect(asked(proxy)).toEqual(["octo", "work", "work", "work", "work"]);
  for (let turn = 0; turn < 3; turn++) await post(proxy, "Hello", free);
  expect(asked(proxy).slice(-3).toSorted()).toEqual(["octo", "plus", "work"]);
  expect(states(proxy)).toEqual(["exhausted", "ready", "ready"]);
  expect(proxy.lines.join("")).toMatch(
    /octo-demo is exhausted until \S+-01T00:00:\d\d\S*: GitHub Copilot answered with status 402 \(quota_exceeded\)\. This account's quota is used up\./,
  );
});

test("the answer that uses up the last of it says so, and the next request goes elsewhere at once", async () => {
  await using proxy = await startProxy({ accounts: all });
  proxy.demo.accounts[0]!.quota.premium.remaining = 2;
  for (let turn = 0; turn < 3; turn++) expect((await post(proxy)).status).toBe(200);
  expect(asked(proxy)).toEqual(["octo", "octo", "work"]);
});

test("a quota that ends for all is a 429 that names every account and its reset, with the earliest as retry-after, and SDKs are told not to wait", async () => {
  await using proxy = await startProxy({ accounts: ["octo-demo", "plus-demo"] });
  proxy.demo.intercept(chat, () => refuse(402, "quota_exceeded", "You have no quota", { "retry-after": "7200" }));
  proxy.demo.intercept(chat, () =>
    refuse(402, "overage_limit_reached", "You have reached your overage limit.", { "retry-after": "3600" }),
  );
  const saids = [
    ["You have no quota.", "You have reached your overage limit."],
    [
      "GitHub Copilot answered with status 402 (quota_exceeded).",
      "GitHub Copilot answered with status 402 (overage_limit_reached).",
    ],
  ] as const;
  // The accounts have the upstream's words of no other request.
  for (const [octo, plus] of saids) {
    const { status, headers, error } = await post(proxy);
    expect([status, error.code, error.type]).toEqual([429, "quota_exceeded", "insufficient_quota"]);
    expect(Number(headers.get("retry-after"))).toBeWithin(3590, 3601);
    expect(headers.get("x-should-retry")).toBe("false");
    expect(error.message).toContain(`octo-demo: ${octo} This account's quota is used up (until `);
    expect(error.message.split("Models that cost no quota may still work.")).toHaveLength(2);
    expect(error.message).toContain(`plus-demo: ${plus} The budget for use beyond the plan is spent; it is set at`);
    expect(error.message.match(/\(until [^)]+\)/g)!.length).toBe(2);
  }
  expect(asked(proxy)).toEqual(["octo", "plus"]);
});

test("the reset of one account alone is told by this machine's clock", async () => {
  await using proxy = await startProxy();
  // In the middle of a minute, so that a second more or less is the same minute.
  const reset = new Date(new Date(Date.now() + 3 * 3600_000).setSeconds(30, 0));
  proxy.demo.intercept(chat, () => refuse(402, "quota_exceeded", "No quota.", { "retry-after": reset.toUTCString() }));
  const { error } = await post(proxy);
  const clock = `${String(reset.getHours()).padStart(2, "0")}:${String(reset.getMinutes()).padStart(2, "0")} `;
  expect(error.message).toMatch(new RegExp(`^No quota. This account's quota is used up until (?:.*, )?${clock}`));
});

test("an account without premium requests still serves free models; without anything, none", async () => {
  await using proxy = await startProxy();
  proxy.demo.intercept(chat, () => refuse(402, "quota_exceeded"));
  expect((await post(proxy)).status).toBe(429);
  expect((await post(proxy, "Hello", free)).status).toBe(200);
  proxy.demo.intercept(chat, () => refuse(402, "free_quota_exceeded"));
  expect((await post(proxy, "Hello", free)).status).toBe(429);
  expect((await post(proxy, "Hello", free)).status).toBe(429);
  expect(asked(proxy).length).toBe(3);
});

test("the next account serves, the one that hit it rests for as long as it says, and then comes first again", async () => {
  await using proxy = await timed({ accounts: all });
  proxy.demo.intercept(chat, () => refuse(429, "rate_limited", "Slow down.", { "retry-after": "20" }));
  expect((await post(proxy)).status).toBe(200);
  await post(proxy);
  expect(asked(proxy)).toEqual(["octo", "work", "work"]);
  expect(states(proxy)).toEqual(["cooling", "ready", "ready"]);
  proxy.pass(20_000);
  await post(proxy);
  expect(asked(proxy).at(-1)).toBe("octo");
});

test("the last failure is the last one in time, though its account failed before another one", async () => {
  await using proxy = await startProxy({ accounts: ["octo-demo", "plus-demo"] });
  const answers = [
    () => refuse(429, "user_global_rate_limited", "Slow down, octo.", { "retry-after": "1" }),
    () => refuse(429, "user_weekly_rate_limited", "Slow down, plus.", { "retry-after": "2" }),
    async () => {
      // Meanwhile plus has rested.
      await Bun.sleep(1500);
      return refuse(402, "quota_exceeded", "You have no quota, octo.", { "retry-after": "3600" });
    },
  ];
  for (const answer of answers) proxy.demo.intercept(chat, answer);
  const { status, error } = await post(proxy);
  expect(asked(proxy)).toEqual(["octo", "plus", "octo"]);
  expect([status, error.code]).toEqual([429, "quota_exceeded"]);
  expect(error.message).toStartWith("You have no quota, octo.");
});

test("a limit without a hint lasts a minute, and the client is told so", async () => {
  await using proxy = await timed({ accounts: ["octo-demo"] });
  proxy.demo.intercept(chat, () => refuse(429, "rate_limited", "Slow down."));
  const { status, headers, error } = await post(proxy);
  expect([status, error.code]).toEqual([429, "rate_limited"]);
  expect(Number(headers.get("retry-after"))).toBeWithin(58, 61);
  expect(error.message).toContain(
    "octo-demo: Slow down. GitHub limits this account's requests, and does not say which (until",
  );
  proxy.pass(61_000);
  expect((await post(proxy)).status).toBe(200);
});

test("a limit is hit that does not say what it holds for: models that cost quota rest, free ones and embeddings go on", async () => {
  await using proxy = await timed({ accounts: ["octo-demo"] });
  for (const code of ["rate_limited", "agent_mode_limit_exceeded:pro", "never_heard_of"]) {
    proxy.demo.intercept(chat, () => refuse(429, code, "Slow down."));
    const { status, error } = await post(proxy);
    expect([status, error.code]).toEqual([429, code]);
    expect(error.message.split("Models that cost no quota may still work.")).toHaveLength(2);
    expect(states(proxy)).toEqual(["cooling"]);
    expect((await post(proxy)).status).toBe(429);
    expect((await post(proxy, "Hello", free)).status).toBe(200);
    const embedded = await proxy.post("/v1/embeddings", { model: "text-embedding-3-small", input: "Hello" });
    expect(embedded.status).toBe(200);
    proxy.pass(61_000);
    expect((await post(proxy)).status).toBe(200);
  }
});

test("a limit is hit: told of a free model, that model rests, and all others go on", async () => {
  await using proxy = await timed({ accounts: ["octo-demo"] });
  proxy.demo.intercept(chat, () => refuse(429, "rate_limited", "Slow down."));
  expect((await post(proxy, "Hello", free)).status).toBe(429);
  expect(states(proxy)).toEqual(["ready"]);
  expect((await post(proxy, "Hello", free)).status).toBe(429);
  expect((await post(proxy)).status).toBe(200);
  expect(asked(proxy).length).toBe(2);
});

test("a free model that rests does so too while the account's premium ones do, for longer", async () => {
  await using proxy = await timed({ accounts: ["octo-demo"] });
  proxy.demo.intercept(chat, () => refuse(429, "rate_limited", "Slow down."));
  expect((await post(proxy, "Hello", free)).status).toBe(429);
  proxy.demo.intercept(chat, () => refuse(429, "rate_limited", "Slow down.", { "retry-after": "3600" }));
  expect((await post(proxy)).status).toBe(429);
  expect((await post(proxy, "Hello", free)).status).toBe(429);
  proxy.pass(61_000);
  expect((await post(proxy, "Hello", free)).status).toBe(200);
  expect((await post(proxy)).status).toBe(429);
});

test("a limit for the whole account rests everything", async () => {
  await using proxy = await timed({ accounts: ["octo-demo"] });
  proxy.demo.intercept(chat, () => refuse(429, "user_global_rate_limited:pro", "Slow down."));
  expect((await post(proxy)).status).toBe(429);
  expect((await post(proxy, "Hello", free)).status).toBe(429);
  const embedded = await proxy.post("/v1/embeddings", { model: "text-embedding-3-small", input: "Hello" });
  expect(embedded.status).toBe(429);
});

test("an absurd end is a day away at most, and a good answer about the quota ends it", async () => {
  await using proxy = await timed({ accounts: ["octo-demo"] });
  const absurd = () => refuse(429, "user_global_rate_limited", "Slow down.", { "retry-after": "99999999" });
  proxy.demo.intercept(chat, absurd);
  expect((await post(proxy)).headers.get("retry-after")).toBe("86400");
  expect(endOf(proxy.app.accounts[0]!.state)! - proxy.now()).toBeWithin(86_000_000, 86_400_001);
  await fetch(`${proxy.url}/usage`);
  expect(states(proxy)).toEqual(["ready"]);

  // What can be meant is not doubted.
  proxy.pass(60_000);
  proxy.demo.intercept(chat, () => refuse(429, "user_global_rate_limited", "Slow down.", { "retry-after": "3600" }));
  expect((await post(proxy)).status).toBe(429);
  await fetch(`${proxy.url}/usage`);
  expect(states(proxy)).toEqual(["cooling"]);
});

test("a quota that is used up is whole again at its reset, whatever the answer says", async () => {
  await using proxy = await timed({ accounts: ["octo-demo"] });
  await fetch(`${proxy.url}/usage`);
  const { resetAt } = proxy.app.accounts[0]!.knownQuota!;
  proxy.demo.intercept(chat, () => refuse(402, "quota_exceeded", "None.", { "retry-after": "99999999" }));
  await post(proxy);
  expect(proxy.app.accounts[0]!.state).toMatchObject({ name: "exhausted", until: resetAt });
});

test("words about a quota do not make one of a limit with a code of its own", async () => {
  await using proxy = await timed({ accounts: ["octo-demo"] });
  proxy.demo.intercept(chat, () =>
    refuse(429, "user_model_rate_limited", "Retry after 3 seconds, or request a quota increase.", {
      "retry-after": "3",
    }),
  );
  expect((await post(proxy)).error.type).toBe("rate_limit_error");
  expect((await post(proxy, "Hello", "claude-sonnet-4.5")).status).toBe(200);
  expect(states(proxy)).toEqual(["ready"]);
});

test("a limit of one model rests that model with this account, and its others go on", async () => {
  await using proxy = await timed({ accounts: ["octo-demo", "plus-demo"] });
  const limited = () => refuse(429, "user_model_rate_limited:pro", "Too many requests.", { "retry-after": "60" });
  proxy.demo.intercept(chat, limited);
  expect((await post(proxy)).status).toBe(200);
  await post(proxy);
  await post(proxy, "Hello", "claude-sonnet-4.5");
  expect(asked(proxy)).toEqual(["octo", "plus", "plus", "octo"]);
  expect(states(proxy)).toEqual(["ready", "ready"]);
  expect(proxy.lines.join("")).toContain(`octo-demo is cooling down for ${premium} until`);

  proxy.demo.intercept(chat, limited);
  const { status, error } = await post(proxy);
  expect(status).toBe(429);
  expect(error.message).toContain("plus-demo: Too many requests. This limit holds for this model only; another one");
  proxy.pass(61_000);
  await post(proxy);
  expect(asked(proxy).at(-1)).toBe("octo");
});

test("a limit of the week, in codes with a suffix, rests the whole account for days, and the client's own clock is used", async () => {
  await using proxy = await timed({ accounts: ["octo-demo"] });
  proxy.demo.intercept(chat, () =>
    refuse(429, "user_weekly_rate_limited:pro", "Weekly limit.", { "retry-after": "187200" }),
  );
  const { status, error, headers } = await post(proxy);
  expect([status, error.code, headers.get("x-should-retry")]).toEqual([429, "user_weekly_rate_limited:pro", "false"]);
  expect(error.message).toMatch(
    /^Weekly limit. This limit holds for the whole account, whatever the model until \d+ \w+, /,
  );
  expect(endOf(proxy.app.accounts[0]!.state)! - proxy.now()).toBeWithin(187_000_000, 187_200_001);
  expect((await post(proxy, "Hello", free)).status).toBe(429);
});

test.each(["model_overloaded", "integration_rate_limited", "extension_blocked"])(
  "a limit is hit: %s is nobody's own: no other account is tried and none rests",
  async (code) => {
    await using proxy = await startProxy({ accounts: all });
    proxy.demo.intercept(chat, () => refuse(429, code, "Busy.", { "retry-after": "10" }));
    const { status, headers } = await post(proxy);
    expect([status, headers.get("retry-after")]).toEqual([429, "10"]);
    expect(asked(proxy)).toEqual(["octo"]);
    expect(states(proxy)).toEqual(["ready", "ready", "ready"]);
  },
);

test("a limit of two seconds is waited for once with one account", async () => {
  await using proxy = await startProxy();
  proxy.demo.intercept(chat, () => refuse(429, "rate_limited", "Slow down.", { "retry-after": "2" }));
  expect((await post(proxy)).status).toBe(200);
  expect(tries(proxy)).toEqual(["octo 429", "octo 200"]);
  expect(proxy.demo.journal.filter(({ path }) => path === chat).map(({ headers }) => headers["x-initiator"])).toEqual([
    "user",
    "agent",
  ]);
});

test("a limit is not waited for twice, and not longer: then the 429 is passed on", async () => {
  await using proxy = await startProxy();
  proxy.demo.intercept(chat, () => refuse(429, "rate_limited", "Slow down.", { "retry-after": "1" }), 2);
  const twice = await post(proxy);
  expect([twice.status, twice.headers.get("retry-after")]).toEqual([429, "1"]);
  await until(() => proxy.app.accounts[0]!.state.name === "ready", "the account is ready again");
  proxy.demo.intercept(chat, () => refuse(429, "rate_limited", "Slow down.", { "retry-after": "5" }));
  const longer = await post(proxy);
  expect([longer.status, longer.headers.get("retry-after")]).toEqual([429, "5"]);
  expect(asked(proxy).length).toBe(3);
});

test("a client that hangs up while it is waited for is let go", async () => {
  await using proxy = await startProxy();
  proxy.demo.intercept(chat, () => refuse(429, "rate_limited", "Slow down.", { "retry-after": "2" }));
  const leaving = new AbortController();
  const left = proxy.post("/v1/chat/completions", ask(), { signal: leaving.signal }).catch(() => "left");
  await until(() => asked(proxy).length === 1, "the upstream is asked");
  leaving.abort();
  expect(await left).toBe("left");
  await until(() => proxy.rows()[0]?.http_status === 499, "the row says that the client left");
  expect([proxy.app.inFlight.count, asked(proxy).length]).toEqual([0, 1]);
});

test("a token that has expired in between is exchanged once, and the request answered", async () => {
  await using proxy = await startProxy();
  await post(proxy);
  proxy.demo.expireTokens();
  expect((await post(proxy)).status).toBe(200);
  expect(tries(proxy)).toEqual(["octo 401", "octo 200"]);
  expect(asked(proxy, "/copilot_internal/v2/token").length).toBe(2);
});

test("revoked at GitHub: the others serve, the person is told which one must sign in, GitHub is left in peace", async () => {
  await using proxy = await timed({ accounts: all });
  await post(proxy);
  const [octo] = proxy.demo.accounts.splice(0, 1);
  for (let turn = 0; turn < 5; turn++) expect((await post(proxy)).status).toBe(200);
  expect(states(proxy)).toEqual(["failed", "ready", "ready"]);
  expect(proxy.lines.filter((line) => line.includes("octo-demo has failed: GitHub no longer accepts")).length).toBe(1);
  const exchanges = () => proxy.demo.journal.filter(({ path }) => path.endsWith("/v2/token")).length;
  const before = exchanges();
  proxy.pass(4 * 60_000);
  await post(proxy);
  expect(exchanges()).toBe(before);

  proxy.demo.accounts.unshift(octo!); // signed in again elsewhere with the same token
  proxy.pass(2 * 60_000);
  await post(proxy);
  expect(asked(proxy).at(-1)).toBe("octo");
  expect(states(proxy)).toEqual(["ready", "ready", "ready"]);
});

test("a 401 that persists costs each account one exchange; nobody left is 424, never 401", async () => {
  await using proxy = await startProxy({ accounts: ["octo-demo", "work-demo"] });
  proxy.demo.intercept(chat, () => new Response("unauthorized: token expired\n", { status: 401 }), always);
  const { status, error } = await post(proxy);
  expect([status, error.code]).toEqual([424, "accounts_failed"]);
  expect(error.message).toContain("octo-demo: ");
  expect(error.message).toContain("work-demo: ");
  expect((await post(proxy)).status).toBe(424);
  expect(asked(proxy, "/copilot_internal/v2/token").toSorted()).toEqual(["octo", "octo", "work", "work"]);
  expect(await (await fetch(`${proxy.url}/health`)).json()).toMatchObject({ accounts: ["failed", "failed"] });
});

test.each([
  ["spammy_user", "Your account was flagged."],
  ["forbidden", "Your account has been suspended."],
])(
  "a sign-in or a right is missing: %s stops everything, loudly: no retry, no other account, until a person has acted",
  async (code, words) => {
    await using proxy = await timed({ accounts: all });
    proxy.demo.intercept(chat, () => refuse(403, code, words));
    const first = await post(proxy);
    expect([first.status, first.error.code]).toEqual([403, "account_suspended"]);
    expect(first.error.message).toContain(words);
    proxy.pass(3600_000);
    for (const model of [premium, free]) {
      const { status, error } = await post(proxy, "Hello", model);
      expect([status, error.code]).toEqual([403, "account_suspended"]);
      expect(error.message).toContain(
        `dragoman has stopped sending requests. octo-demo: GitHub Copilot answered with status 403 (${code}).`,
      );
      expect(error.message).toContain("`dragoman auth rm octo-demo`");
    }
    expect(asked(proxy)).toEqual(["octo"]);
    expect(proxy.lines.filter((line) => / error octo-demo has failed: /.test(line)).length).toBe(1);
  },
);

test("a sign-in or a right is missing: the same when the exchange says so", async () => {
  await using proxy = await startProxy({ accounts: all });
  const { demo } = proxy;
  await proxy.app.catalogue.models();
  demo.expireTokens();
  demo.intercept("/copilot_internal/v2/token", () => Response.json({ message: "Suspended." }, { status: 403 }));
  expect((await post(proxy)).status).toBe(403);
  expect((await post(proxy)).error.code).toBe("account_suspended");
  expect(asked(proxy)).toEqual(["octo"]);
});

test("a model that is not enabled for the account: its words and where to enable it, nobody rests, the next may serve", async () => {
  await using proxy = await startProxy({ accounts: ["octo-demo", "work-demo"] });
  const forbidden = () => new Response("access to this endpoint is forbidden\n", { status: 403 });
  proxy.demo.intercept(chat, (seen) => (seen.account === "octo-demo" ? forbidden() : undefined), always);
  expect((await post(proxy)).status).toBe(200);
  expect(tries(proxy)).toEqual(["octo 403", "octo 403", "work 200"]);
  expect(states(proxy)).toEqual(["ready", "ready"]);

  await using alone = await startProxy();
  alone.demo.intercept(chat, forbidden, 2);
  const { status, error } = await post(alone);
  expect(status).toBe(403);
  expect(error.message).toContain("access to this endpoint is forbidden");
  expect(error.message).toContain("https://github.com/settings/copilot/features");
  expect((await post(alone)).status).toBe(200);
});

test("a model that only the second account has enabled is served by it", async () => {
  await using proxy = await startProxy({ accounts: ["octo-demo", "work-demo"] });
  const list = (state: string) => () =>
    Response.json({ data: [{ id: "new-model", policy: { state }, billing: { is_premium: true, multiplier: 1 } }] });
  proxy.demo.intercept("/models", (seen) => list(seen.account === "octo-demo" ? "disabled" : "enabled")(), 2);
  proxy.demo.intercept(chat, ({ body }) =>
    Response.json({
      id: "x",
      object: "chat.completion",
      created: 1,
      model: (body as { model: string }).model,
      choices: [{ index: 0, finish_reason: "stop", message: { role: "assistant", content: "Hi" } }],
    }),
  );
  expect((await post(proxy, "Hello", "new-model")).status).toBe(200);
  expect(asked(proxy)).toEqual(["work"]);
});

test("an account whose host has moved is asked at the new one", async () => {
  await using proxy = await startProxy();
  await post(proxy);
  proxy.demo.accounts[0]!.host = "business";
  expect((await post(proxy)).status).toBe(200);
  expect(tries(proxy)).toEqual(["octo 421", "octo 200"]);
});

test("an upstream that is too new says that dragoman must be updated, and no account is blamed", async () => {
  await using proxy = await startProxy({ accounts: all });
  const { status, headers, error } = await post(proxy, "[demo: 466] Hello");
  expect([status, error.code, headers.get("x-should-retry")]).toEqual([424, "api_version_retired", "false"]);
  expect(error.message).toContain("dragoman is too old for this upstream: update it");
  expect(asked(proxy)).toEqual(["octo"]);
  expect(states(proxy)).toEqual(["ready", "ready", "ready"]);
});

test.each(["400-body", "400-plain", "400-off-topic", "400-long", "400-field", "400-previous", "413", "422"])(
  "what is no account's fault: %s changes no account and is not tried elsewhere",
  async (name) => {
    await using proxy = await startProxy({ accounts: all });
    const { status } = await post(proxy, `[demo: ${name}] Hello`);
    expect(status).toBeWithin(400, 423);
    expect(new Set(asked(proxy))).toEqual(new Set(["octo"]));
    expect(states(proxy)).toEqual(["ready", "ready", "ready"]);
  },
);

test("a model the account does not get after all is asked of the next one, and nobody rests", async () => {
  await using proxy = await startProxy({ accounts: all });
  expect((await post(proxy, "[demo: 400-model @octo-demo] Hello")).status).toBe(200);
  expect(tries(proxy)).toEqual(["octo 400", "work 200"]);
  const { status, error } = await post(proxy, "[demo: 400-model] Hello");
  expect([status, error.code]).toEqual([404, "model_not_found"]);
  expect(states(proxy)).toEqual(["ready", "ready", "ready"]);
});

test.each(["500", "502", "503", "504", "529"])("a %s is passed on at once and not multiplied", async (name) => {
  await using proxy = await startProxy({ accounts: all });
  expect((await post(proxy, `[demo: ${name}] Hello`)).status).toBe(Number(name));
  expect(asked(proxy)).toEqual(["octo"]);
});

test("five failures in a row rest an account for 30 s, the next probe that fails for longer; a success forgives all", async () => {
  await using proxy = await timed({ accounts: ["octo-demo", "work-demo"] });
  const fail = () => post(proxy, "[demo: 500 @octo-demo] Hello").then(({ status }) => status);
  for (let turn = 0; turn < 5; turn++) expect(await fail()).toBe(500);
  expect(await fail()).toBe(200);
  expect(states(proxy)).toEqual(["cooling", "ready"]);
  expect(proxy.lines.join("")).toContain("Its last requests all failed at GitHub Copilot (status 500).");
  proxy.pass(30_000);
  expect([await fail(), await fail()]).toEqual([500, 200]);
  proxy.pass(31_000);
  expect(states(proxy)).toEqual(["cooling", "ready"]);
  proxy.pass(30_000);
  expect((await post(proxy)).status).toBe(200);
  expect(asked(proxy).at(-1)).toBe("octo");
  for (let turn = 0; turn < 4; turn++) expect(await fail()).toBe(500);
  expect((await post(proxy)).status).toBe(200);
  expect(await fail()).toBe(500);
  expect(states(proxy)).toEqual(["ready", "ready"]);
});

test("the last account that is ready never rests for failures", async () => {
  await using proxy = await startProxy({ accounts: ["octo-demo", "work-demo"] });
  for (let turn = 0; turn < 12; turn++) await post(proxy, "[demo: 500] Hello");
  expect(states(proxy)).toEqual(["cooling", "ready"]);
  expect((await post(proxy)).status).toBe(200);
});

const exchange = "/copilot_internal/v2/token";

test("a server that cannot ask GitHub at its start for anybody listens, says 503 and when again, is healthy, and recovers alone", async () => {
  await using proxy = await timed({ accounts: ["octo-demo", "work-demo"] });
  let down = true;
  proxy.demo.intercept(exchange, () => (down ? new Response("", { status: 500 }) : undefined), always);
  expect((await fetch(`${proxy.url}/v1/models`)).status).toBe(503);
  expect((await fetch(`${proxy.url}/health`)).status).toBe(200);
  for (let minute = 0; minute < 5; minute++) {
    const { status, headers } = await post(proxy);
    expect(status).toBe(503);
    expect(Number(headers.get("retry-after"))).toBeWithin(1, 75);
    proxy.pass(60_000);
  }
  down = false;
  proxy.pass(20_000);
  expect((await post(proxy)).status).toBe(200);
  expect(states(proxy)).toEqual(["ready", "ready"]);
});

test("an old token goes on while GitHub cannot be asked for a while, and nobody notices", async () => {
  await using proxy = await timed({ accounts: ["octo-demo"] });
  await post(proxy);
  proxy.demo.intercept(exchange, () => new Response("", { status: 502 }), 3);
  proxy.pass(25 * 60_000);
  for (let turn = 0; turn < 4; turn++) expect((await post(proxy)).status).toBe(200);
  expect(states(proxy)).toEqual(["ready"]);
});

test("an exchange that answers a page: the account rests, the others serve", async () => {
  await using proxy = await startProxy({ accounts: ["octo-demo", "work-demo"] });
  proxy.demo.intercept(
    exchange,
    (seen) => (seen.account === "octo-demo" ? new Response("<html>Sign in</html>") : undefined),
    always,
  );
  expect((await post(proxy)).status).toBe(200);
  expect(asked(proxy)).toEqual(["work"]);
  expect(states(proxy)).toEqual(["cooling", "ready"]);
});

test("GitHub cannot be asked: who hangs up while an account has no Copilot token waits no longer, and nothing is reserved or sent", async () => {
  const budgets = [{ name: "All", unit: "requests", limit: 9, per: "day" }];
  await using proxy = await timed({ accounts: ["octo-demo"], config: { budgets } });
  const begunAt = proxy.now();
  await post(proxy);
  const sent = asked(proxy).length;
  proxy.pass(60 * 60_000);
  const held = Promise.withResolvers<undefined>();
  let isAsked = false;
  proxy.demo.intercept(exchange, () => {
    isAsked = true;
    return held.promise;
  });
  const client = new AbortController();
  const body = { model: "claude-sonnet-4.6", max_tokens: 50, messages: [{ role: "user", content: "Hello" }] };
  const answer = proxy.post("/v1/messages", body, { signal: client.signal }).catch(() => undefined);
  await until(() => isAsked, "a token is asked for");
  client.abort();
  await answer;
  await until(() => proxy.rows().length === 2, "the request has its row");
  expect(proxy.rows()[0]).toMatchObject({ http_status: 499, attempts: "[]", account_id: null });
  held.resolve(undefined);
  await until(() => proxy.app.accounts[0]!.presentCopilotToken() !== undefined, "the token is there");
  expect(asked(proxy)).toHaveLength(sent);
  const { items } = (await (await fetch(`${proxy.url}/api/admin/budgets`)).json()) as {
    items: { started_at_ms: number }[];
  };
  // The day may have ended meanwhile.
  expect(items).toMatchObject([{ used: items[0]!.started_at_ms <= begunAt ? 1 : 0, reserved: 0 }]);
});

test.each([
  ["a 401 has its token renewed", exchange, { refused: 401 }],
  ["a 403 has its token renewed", exchange, { refused: 403 }],
  ["a 421 has its host asked for", exchange, { refused: 421 }],
  ["its quota is asked for before it may be charged", "/copilot_internal/user", { isFirst: true, neverOverage: true }],
  ["its models are listed", "/models", { isFirst: true }],
  ["its models are listed for Auto", "/models", { isFirst: true, model: "auto" }],
  ["its models are listed for embeddings", "/models", { isFirst: true, to: "/v1/embeddings" }],
] as [
  string,
  string,
  Partial<{ refused: number; neverOverage: boolean; isFirst: boolean; model: string; to: string }>,
][])(
  "GitHub cannot be asked: who hangs up while %s waits no longer, and the place is free",
  async (_, path, { refused, neverOverage, isFirst, model, to = "/v1/chat/completions" }) => {
    await using proxy = await startProxy({ accounts: ["octo-demo"], config: { neverOverage } });
    if (!isFirst) await post(proxy, "Hello", free);
    if (refused) proxy.demo.intercept(chat, () => refuse(refused, "unauthorized"));
    const held = Promise.withResolvers<undefined>();
    let isAsked = false;
    proxy.demo.intercept(path, () => {
      isAsked = true;
      return held.promise;
    });
    const rows = proxy.rows().length;
    const client = new AbortController();
    const body = to.endsWith("embeddings")
      ? { model: "text-embedding-3-small", input: "Hello" }
      : ask("Hello", model ?? (neverOverage ? premium : free));
    const answer = proxy.post(to, body, { signal: client.signal }).catch(() => undefined);
    await until(() => isAsked, "GitHub is asked");
    const left = performance.now();
    client.abort();
    await answer;
    await until(() => proxy.rows().length > rows, "the request has its row");
    // A call to GitHub ends by itself after 15 s.
    expect(performance.now() - left).toBeLessThan(10_000);
    expect(proxy.rows()[0]).toMatchObject({ http_status: 499 });
    expect(proxy.app.inFlight.count).toBe(0);
    held.resolve(undefined);
  },
);
