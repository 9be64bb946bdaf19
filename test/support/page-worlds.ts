/**
 * Servers whose every page and answer is known beforehand: their clock stands still, and their rows, members and accounts
 * are always the same. What is random each time has a word in its place.
 */
import { Database } from "bun:sqlite";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Entry } from "../../src/books/history/entry";
import { type Portion, packed } from "../../src/books/history/portions";
import { type DemoAccount, demoAccounts, quotas } from "../../src/demo/accounts";
import { savedFrom } from "../people/accounts/bench";
import { milliseconds, withNames } from "./blocks";
import { signedIn } from "./form-fields";
import { entry } from "./history-rows";
import type { Json } from "./json";
import { type RunningProxy, startProxy } from "./proxy";
import { fixtures } from "./streams";

export const now = Date.parse("2026-11-20T10:37:00Z");
const [minute, hour, day] = [60_000, 3_600_000, 86_400_000];
const clock = { now: () => now, monotonic: () => 1_000_000, random: () => 0.5 };

/** The owner at this machine; somebody at another one; a link on another site. */
const strangers = {
  owner: {},
  away: { "x-forwarded-for": "10.0.0.9" },
  foreign: { "sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document" },
  /** The owner behind a proxy that speaks TLS. */
  proxied: {
    ...{ host: "ai.example.org", "x-forwarded-for": "10.0.0.9", "x-forwarded-proto": "https" },
    "x-admin-token": "t-admin-0123456789",
  },
};

export interface World extends AsyncDisposable {
  url: string;
  /** In which its server runs. */
  zone: string;
  /** What a browser of this person sends. */
  headers: Record<string, Record<string, string>>;
  /** The text with a word in place of what is random, and what is random in place of its word. */
  steady(text: string): string;
  given(text: string): string;
  /** What its log says of faults of our own. */
  faults(): string[];
}

const account = (login: string, quota: DemoAccount["quota"], more: Partial<DemoAccount> = {}): DemoAccount => ({
  ...demoAccounts()[0]!,
  login,
  githubToken: `ghu_DEMO${login.replaceAll("-", "").padEnd(32, "0")}`,
  quota,
  ...more,
});

/** Everything that pages show, once, or as often as it makes a difference. */
async function fullWorld(zone = "UTC"): Promise<World> {
  process.env.TZ = zone;
  const own = [
    account("octo-demo", quotas.pro()),
    account("cred-demo", quotas.credits(), { plan: "individual_pro" }),
    account("over-demo", quotas.overage()),
    account("used-demo", quotas.exhausted()),
    account("rest-demo", quotas.proPlus()),
    account("lost-demo", quotas.proPlus()),
    account("idle-demo", quotas.unlimited(), { plan: "business" }),
    account("free-demo", quotas.free(), { plan: "free" }),
  ];
  const annas = ["anna-hub", "anna-two"].map((login) => account(login, quotas.credits(), { plan: "individual_pro" }));
  const ends = [
    { limit: 2, per: "day", name: "Small", unit: "requests", scope: { model: "gpt-5.4" } },
    { limit: 3, per: "day", name: "Polite", unit: "requests", then: "warn" },
    { limit: 60, per: "month", name: "Slow credits", unit: "credits", warn: [0.5, 0.9] },
    { limit: 5000, per: "month", name: "Premium of all", unit: "premium" },
    { limit: 40, per: "month", name: "Each member", unit: "credits", each: "member", limits: { anna: 5 } },
    { limit: 50, per: "month", name: "Each key", unit: "requests", each: "key" },
    { limit: 6, per: "day", name: "Only a project", unit: "requests", scope: { project: "web-shop" } },
    {
      ...{ limit: 7, per: "day", name: "Only some", unit: "requests" },
      scope: { member: "ann*", account: "github.com/*", key: "anna/*", model: "claude-*", project: "web-*" },
    },
  ];
  const proxy = await startProxy({
    clock,
    env: { ADMIN_TOKEN: "t-admin-0123456789" },
    demo: { now: () => now, accounts: [...own, ...annas] },
    saved: (demo) => demo.accounts.slice(0, own.length).map((each) => savedFrom(each, now - 40 * day)),
    config: {
      retentionDays: 40,
      auth: {
        apiKeys: [
          "k-plain-0123456789",
          { name: "laptop", key: "k-laptop-0123456789", models: ["claude-*", "gpt-5.4"] },
          { name: "old one", key: "k-older-01234567890", expiresAt: "2026-11-01T00:00:00Z" },
          {
            name: "ci",
            sha256: "ab".repeat(32),
            accounts: ["github.com/octo-demo"],
            expiresAt: "2026-12-01T00:00:00Z",
            budgets: [{ unit: "credits", limit: 10, per: "day" }],
          },
        ],
      },
      providers: {
        own: { type: "chat", baseUrl: "http://127.0.0.1:9/v1", apiKey: "k-own-0123456789", models: ["qwen3", "glm"] },
      },
      pausedAccounts: ["github.com/idle-demo"],
      accountOrder: ["github.com/octo-demo"],
      modelAliases: { fast: "gpt-5-mini", "big-*": "claude-opus-4.6" },
      fallbacks: { "claude-opus-4.6": ["claude-sonnet-4.6", "gpt-5.4"] },
      routes: { title: "gpt-5-mini" },
      upstreamHeaders: { "x-team": "one & two", "x-secret": "s-0123456789" },
      notices: { webhookUrl: "http://127.0.0.1:9/hook" },
      budgets: ends.map((each) => ({ ...each, since: "2026-11-05T00:00:00.000Z" })),
    },
  });
  const { app } = proxy;
  const members = app.members!;
  const keys: Record<string, string> = {};
  const ids = new Map<string, string>();
  for (const [name, limits, isOpen] of [
    ["anna", { models: ["claude-*", "gpt-5.4", "gpt-5-mini"], key_days: 90 }],
    ["ben", {}],
    ["zoe+b", { key_days: 1 }, true],
  ] as const) {
    const { code, member } = await members.invite(name, limits as object);
    ids.set(member.id, `ID-OF-${name.slice(0, 3).toUpperCase()}`);
    if (!isOpen) keys[name] = (await members.accept(code))!.key;
  }
  const idOf = (name: string) => members.named(name)!.id;
  for (const each of annas) app.accountStore.add({ ...savedFrom(each, now - 3 * day), member: idOf("anna") });
  await members.invite("ben");
  backdate(proxy.home);
  app.refreshAccounts();
  await members.hearAll();
  await count(proxy, fullRows(idOf));
  await Promise.all(app.allAccounts.map((each) => each.quota()));
  const stateOf = (login: string, state: object) =>
    app.accounts.find(({ id }) => id === login)!.setState(state as never);
  stateOf("rest-demo", { name: "cooling", until: now + 10 * minute, reason: "GitHub limits this account." });
  stateOf("lost-demo", { name: "failed", retryAt: now + hour, reason: "GitHub does not know the token any more." });
  app
    .forMember(idOf("anna"))
    .accounts.find(({ id }) => id === "anna-two")!
    .setState({ name: "failed", reason: "GitHub refuses it." });
  for (const field of ["service_tier", "seed"]) app.unsupportedParams.learn("gpt-5-mini", field);
  const { cookie: anna } = await signedIn(proxy.url, keys.anna!);
  const { cookie: ben } = await signedIn(proxy.url, keys.ben!);
  return worldOf(
    proxy,
    {
      ...strangers,
      anna: { cookie: anna },
      ben: { cookie: ben },
      "anna-key": { authorization: `Bearer ${keys.anna}` },
    },
    [...[...ids], [keys.anna!, "KEY-OF-ANNA"]],
  );
}

/** The tables of members have a clock of their own. */
function backdate(home: string): void {
  const tables = new Database(join(home, "members.sqlite"));
  tables.run("UPDATE members SET created_at_ms = ?", [now - 10 * day]);
  tables.run("UPDATE keys SET created_at_ms = ?", [now - 9 * day]);
  tables.run("UPDATE invitations SET expires_at_ms = ? WHERE used_at_ms IS NULL", [Date.parse("2099-01-02T03:04Z")]);
  tables.close();
}

/** In the history, the metrics and the budgets. */
async function count({ app, history }: RunningProxy, rows: readonly Entry[]): Promise<void> {
  for (const row of rows) {
    app.history.add(row);
    app.exchangeMetrics.count(row, []);
    if (row.started_at_ms < Date.UTC(2026, 10, 5) || row.account_key === null) continue;
    const amounts = { unit: row.cost_unit ?? "credits", amount: row.cost ?? 0 };
    const { account_id: account, key_name: key, upstream_model: model, project } = row;
    const member = (row.member !== null && app.members?.find(row.member)) || null;
    const subject = { account, member, key, model: model!, accountKey: row.account_key!, isProvided: false, project };
    const reservation = await Promise.try(() => app.budgets.reserve(subject, amounts)).catch(() => undefined);
    if (reservation && !(reservation instanceof Error))
      app.budgets.settle(reservation, { model: "", expected: amounts, real: amounts });
  }
  history.flush();
}

const portionsOf = (scale: number): string => {
  const of = (kind: Portion["kind"], tool: string | null, tokens: number, cost: number | null): Portion => ({
    ...{ kind, tool, count: 2, tokens: tokens * scale, cached: Math.floor((tokens * scale) / 2) },
    cost: cost === null ? null : cost * scale,
    grown: kind === "results" ? 40 * scale : null,
  });
  return packed([
    of("tools", null, 300, 3e6),
    of("tools", "mcp__github", 900, 9e6),
    of("tools", "mcp__jira", 700, 7e6),
    of("system", null, 2_000, 2e7),
    of("person", null, 100, 1e6),
    of("client", null, 40, null),
    of("calls", "Read", 60, 6e5),
    of("calls", "mcp__github", 30, 3e5),
    of("results", "Read", 5_000, 5e7),
    of("output", null, 800, 4e7),
    of("surcharge", null, 100, 1e7),
  ]);
};

/** One of each kind, of `fixtures/worlds/full.txt`, with the times for which they are over, and a few weeks of plain ones. */
function fullRows(idOf: (name: string) => string): Entry[] {
  const plain = [
    { upstream_model: "claude-sonnet-4.6", client_name: "claude-cli/2.0", account_id: "cred-demo" },
    { upstream_model: "gpt-5.4", client_model: "gpt-5.4", client_name: "codex_cli_rs/0.63", account_id: "octo-demo" },
    { upstream_model: "gpt-5-mini", client_model: "fast", client_name: null, account_id: "cred-demo", cost: 0 },
  ];
  const rows = Array.from(
    { length: 40 },
    (_, at): Partial<Entry> => ({
      request_id: `plain-${at}`,
      started_at_ms: now - at * 17 * hour - 3 * hour,
      duration_ms: 900 + at * 37,
      input_tokens: 400 + at * 1_000,
      output_tokens: 20 + at * 11,
      cached_tokens: at % 3 === 0 ? null : at * 500,
      ...plain[at % 3],
      ...(at % 3 === 1 && { cost: (at % 4) * 1e9, cost_unit: "premium" as const }),
      member: at % 5 === 0 ? idOf("anna") : null,
      key_name: at % 5 === 0 ? "anna/key-1" : at % 2 ? "laptop" : null,
    }),
  );
  return [...rows, ...rowsIn(textOf("full"), idOf)]
    .map((row) => entry({ fixups: '["model-name"]', account_id: "cred-demo", ...row }))
    .sort((one, other) => one.started_at_ms - other.started_at_ms);
}

const textOf = (world: string) =>
  readFileSync(join(fixtures, "worlds", `${world}.txt`), "utf8")
    .replaceAll("$evil", JSON.stringify(evil).slice(1, -1))
    .replaceAll("$long", "0123456789".repeat(40));

/** Behind an id and how long ago it was, or when the first of several was, what a row has. */
const rowsIn = (text: string, idOf: (name: string) => string): Partial<Entry>[] =>
  [...text.matchAll(/^(?:(\d+)x )?([\w-]+) (\d+[smhd]) (.*)$/gm)].flatMap(([, times, id, ago, json]) => {
    const { portions, ...given } = JSON.parse(json!.replace(/\$(\w+)/g, (_, name) => idOf(name)));
    const texts = Object.entries(given).map(([name, value]) => [
      name,
      typeof value === "object" && value !== null ? JSON.stringify(value) : value,
    ]);
    return Array.from({ length: Number(times ?? 1) }, (_, at) => ({
      request_id: times ? `${id}-${at}` : id!,
      started_at_ms: now - milliseconds(ago!) + at * minute,
      ...Object.fromEntries(texts),
      ...(portions !== undefined && {
        portions: typeof portions === "number" ? portionsOf(portions) : packed(portions),
      }),
    }));
  });

async function worldOf(
  proxy: RunningProxy,
  headers: World["headers"],
  words: readonly (readonly [string, string])[] = [],
): Promise<World> {
  const all: (readonly [string, string])[] = [
    [proxy.url, "http://HERE"],
    [proxy.demo.url, "http://UPSTREAM"],
    [proxy.home, "HOME"],
    ...words,
  ];
  return {
    url: proxy.url,
    zone: process.env.TZ!,
    headers,
    steady: (text) => withNames(ofNoRun(text), all),
    given: (text) =>
      withNames(
        text,
        words.map(([actual, name]) => [name, actual]),
      ),
    faults: () => proxy.lines.filter((line) => / error .* unexpected/.test(line)),
    [Symbol.asyncDispose]: () => proxy[Symbol.asyncDispose](),
  };
}

/** What a run has of its own: the keys of its forms, and what the page Health says of the process. */
export const ofNoRun = (text: string) =>
  text
    .replace(/form_token=[\w-]+/g, "form_token")
    .replace(/(?<=^= (?:Process ID|Runtime):\n|^= Started:\n(?=.*\(0 ms)).*/gm, "of this run")
    .replace(/(?<=<hidden change=|"revision": |"started_at_ms": (?=\d+,\n "history))[^>,]+/g, "*")
    .replace(/(?<=\/assets\/try\.js\?)[\w-]+/g, "*")
    .replace(/[\d.]+ [KM]iB/g, "SIZE");

/** Nobody is signed in, and nothing was asked. */
const emptyWorld = async () => worldOf(await startProxy({ clock, demo: { now: () => now }, accounts: [] }), strangers);

/** Prices by the token, what the cache saved and lost, a request that runs, and rows of which nothing is known. */
async function busyWorld(): Promise<World> {
  const world = await writtenWorld("busy");
  const messages = [{ role: "user", content: "[demo: silence 600] Hello" }];
  const body = JSON.stringify({ model: "claude-sonnet-4.6", stream: true, messages });
  const running = await fetch(`${world.url}/v1/chat/completions`, { method: "POST", body });
  const id = running.headers.get("x-request-id")!;
  return {
    ...world,
    // What runs goes by the machine's own clock.
    given: (text) => world.given(text).replaceAll("RUNNING", id),
    steady: (text) =>
      world
        .steady(text.replaceAll(id, "RUNNING"))
        .replace(/(?<=\n {2}"(?:started_at|first_byte)_ms": |200,"ms":)\d+/g, "0")
        .replace(/(?<=after )[\d.]+ m?s/g, "0 ms")
        .replace(/(?<=responding · |= Duration:\n).*/g, "0 ms"),
    async [Symbol.asyncDispose]() {
      await running.body!.cancel();
      await world[Symbol.asyncDispose]();
    },
  };
}

/** As its file says: in the first line how its server starts, then its rows. */
async function writtenWorld(name: string): Promise<World> {
  const text = textOf(name);
  const {
    accounts,
    isDemo,
    members = {},
    states = {},
    learned = {},
    ...setup
  }: Json = JSON.parse(/^: (.*)$/m.exec(text)![1]!);
  const known = Object.entries<Json>(accounts ?? {}).map(([login, { as = "pro", plan, models, of, ...premium }]) => {
    const quota = quotas[as as keyof typeof quotas]();
    return {
      of,
      ...account(
        login,
        { ...quota, premium: { ...quota.premium, ...premium } },
        { ...(plan && { plan }), ...(models && { models }) },
      ),
    };
  });
  const proxy = await startProxy({
    clock,
    ...setup,
    demo: { now: () => now, ...setup.demo, ...(accounts && { accounts: known }) },
    ...(accounts &&
      !isDemo && { saved: () => known.flatMap((each) => (each.of ? [] : savedFrom(each, now - 40 * day))) }),
  });
  const { app } = proxy;
  const headers: World["headers"] = { ...strangers };
  const words: [string, string][] = [];
  for (const [member, limits] of Object.entries(members)) {
    const { code, member: made } = await app.members!.invite(member, limits as object);
    const { key } = (await app.members!.accept(code))!;
    words.push([made.id, `ID-OF-${member.toUpperCase()}`], [key, `KEY-OF-${member.toUpperCase()}`]);
    headers[member] = { cookie: (await signedIn(proxy.url, key)).cookie };
  }
  if (words.length > 0) {
    backdate(proxy.home);
    await app.members!.hearAll();
  }
  const idOf = (member: string) => app.members!.named(member)!.id;
  for (const each of known)
    if (each.of) app.accountStore.add({ ...savedFrom(each, now - 3 * day), member: idOf(each.of) });
  app.refreshAccounts();
  await count(proxy, rowsIn(text, idOf).map(entry));
  await Promise.all(app.allAccounts.map((each) => each.quota()));
  for (const [login, state] of Object.entries(states))
    app.allAccounts.find(({ id }) => id === login)!.setState(state as never);
  for (const [model, fields] of Object.entries<Json>(learned))
    for (const field of fields) app.unsupportedParams.learn(model, field);
  return worldOf(proxy, headers, words);
}

/** Of somebody who means harm. */
export const evil = `"><svg onload=alert(1)></script><script>alert(2)</script><img src=x onerror=alert(3)>`;

const written = ["edges", "fresh", "odd", "small", "tiny", "weeks"] as const;
type Written = Record<(typeof written)[number], () => Promise<World>>;

export const worlds = {
  full: fullWorld,
  empty: emptyWorld,
  busy: busyWorld,
  ...(Object.fromEntries(written.map((name) => [name, () => writtenWorld(name)])) as Written),
  /** The others run in UTC, so it is started last. */
  nepal: () => fullWorld("Asia/Kathmandu"),
};
