/**
 * Rows: what the upstream no longer sends: no number that is read from it becomes wrong, and the owner hears which one
 * is unknown.
 */
import { afterAll, describe, expect, test } from "bun:test";
import { Losses } from "../../../src/books/changes/losses";
import { type AnswerKind, answerMembers, type ReadMember, usageMembers } from "../../../src/books/changes/read-members";
import type { Row } from "../../../src/books/history/history";
import { type DemoAccount, demoAccounts, quotas } from "../../../src/demo/accounts";
import type { DemoOptions } from "../../../src/demo/state";
import type { JsonObject } from "../../../src/dialects/hub/conversation";
import type { App } from "../../../src/parts/app";
import { exampleModels } from "../../../src/proxy/upstream/models/known-models";
import type { Model } from "../../../src/proxy/upstream/models/model";
import { costOf } from "../../../src/proxy/upstream/models/price";
import { autoAccounts } from "../../support/auto-accounts";
import { type ListName, lists, type Rename, renamed } from "../../support/drifted";
import { type RunningProxy, startProxy } from "../../support/proxy";
import { drawn } from "../../support/random";
import { readSamples, valueIn } from "../../support/samples";

const [octo, work, plus] = demoAccounts() as [DemoAccount, DemoAccount, DemoAccount];
const credits: DemoAccount = { ...plus, quota: quotas.credits() };
const pooled: DemoAccount = { ...work, quota: quotas.pooledOut() };
const legacy: DemoAccount = { ...octo, plan: "free", quota: quotas.freeLegacy() };
const overdrawn: DemoAccount = { ...octo, quota: quotas.overage() };

interface Setup {
  list: ListName;
  account: DemoAccount;
  /** The model that is asked. */
  model?: string;
}

const setups = {
  A: { list: "A", account: octo },
  B: { list: "B", account: credits },
  mixed: { list: "mixed", account: credits },
  C: { list: "C", account: credits },
  unlimited: { list: "A", account: work },
  pooled: { list: "C", account: pooled },
  legacy: { list: "A", account: legacy },
  overdrawn: { list: "A", account: overdrawn },
  claude: { list: "C", account: credits, model: "claude-haiku-4.5" },
  codex: { list: "C", account: credits, model: exampleModels.gpt },
  gemini: { list: "C", account: credits, model: "gemini-3.8-flash" },
} satisfies Record<string, Setup>;
type SetupName = keyof typeof setups;

/** One that the list offers at /chat/completions. */
const chatModel = ({ list }: Pick<Setup, "list">): string => (list === "A" ? "gpt-5-mini" : "kimi-k3");

/** A clock that moves on by more than an answer of the quota endpoint is reused. */
class Clock {
  at = Date.now();
  now = () => this.at;
}

const received: string[] = [];
const webhook = Bun.serve({
  hostname: "127.0.0.1",
  port: 0,
  async fetch(request) {
    received.push(await request.text());
    return new Response("ok");
  },
});
afterAll(() => webhook.stop(true));

async function open(name: SetupName, clock: Clock, now: { rename?: Rename } = {}): Promise<RunningProxy> {
  const { list, account }: Setup = setups[name];
  const form: DemoOptions = lists[list];
  const accounts = [structuredClone(account)];
  return startProxy({
    demo: { ...form, accounts, change: renamed(now, form.change), now: clock.now },
    config: { notices: { webhookUrl: webhook.url.href } },
    clock: { now: clock.now, monotonic: clock.now },
  });
}

/** Long enough for the upstream to cache it. */
const prompt = "Hello there, and good morning. ".repeat(200);
const bodies: Record<string, (model: string, stream: boolean) => [path: string, body: object]> = {
  chat: (model, stream) => [
    "/v1/chat/completions",
    { model, stream, messages: [{ role: "user", content: prompt }], reasoning_effort: "low" },
  ],
  responses: (model, stream) => ["/v1/responses", { model, stream, input: prompt }],
  messages: (model, stream) => [
    "/v1/messages",
    { model, stream, max_tokens: 900, messages: [{ role: "user", content: prompt }] },
  ],
};

const rowNumbers = (row: Row | undefined) => ({
  input: row?.input_tokens,
  output: row?.output_tokens,
  cached: row?.cached_tokens,
  written: row?.cache_write_tokens,
  reasoning: row?.reasoning_tokens,
  credits: row?.cost,
  isEstimated: row?.tokens_estimated,
});

const priced = { input: 150_000, output: 1_000, cachedInput: 100, cacheWrite: 50 };
const numbersOfModel = ({ id, limits, price }: Model) => ({
  id,
  limits,
  units: price.units,
  isFree: !price.premium || undefined,
  short: costOf(price, priced, true).amount,
  long: costOf(price, { ...priced, input: 300_000 }, true).amount,
  uncached: costOf(price, { input: 5, output: 5 }, true).amount,
});

/** What an answer of this kind is read for, after it was asked for. */
async function numbersAfter(where: AnswerKind, setup: Setup, proxy: RunningProxy, stream: boolean): Promise<unknown> {
  const { app } = proxy;
  const [account] = app.accounts;
  switch (where) {
    case "models": {
      const listed = await app.catalogue.current().catch(() => ({ models: [] as Model[] }));
      return Object.fromEntries(listed.models.map((model) => [model.id, numbersOfModel(model)]));
    }
    case "token":
      return (await account!.copilotToken().catch(() => undefined))?.baseUrl.length === 0;
    case "user":
      return numbersOfQuota(await account!.quota());
    case "quota headers":
      await (await proxy.post(...bodies.chat!(chatModel(setup), false))).text();
      return numbersOfQuota(account!.knownQuota);
    default: {
      const model = setup.model ?? chatModel(setup);
      for (let times = 0; times < 3; times++) await (await proxy.post(...bodies[where]!(model, stream))).text();
      return rowNumbers(proxy.rows()[0]);
    }
  }
}

function numbersOfQuota(quota: App["accounts"][number]["knownQuota"]) {
  const { entitlement, remaining, unlimited, overageCount, resetAt, plan, unit } = quota ?? {};
  return {
    unit: unit === "unknown" ? null : unit,
    entitlement,
    remaining,
    unlimited: unlimited || undefined,
    overageCount,
    resetAt,
    plan,
  };
}

/** Every path at which the numbers differ and are not unknown. */
function wrongIn(found: unknown, baseline: unknown, path = ""): string[] {
  if (found === undefined || found === null) return [];
  if (typeof found === "object")
    return Object.entries(found).flatMap(([name, value]) =>
      wrongIn(value, (baseline as Record<string, unknown> | undefined)?.[name], `${path}.${name}`),
    );
  // What is left is stated three times, with and without its digits.
  if (path === ".remaining" && Math.abs(Number(found) - Number(baseline)) < 1.6) return [];
  return found === baseline ? [] : [`${path}: ${JSON.stringify(found)} instead of ${JSON.stringify(baseline)}`];
}

/** Where the demo's answers of a kind are, and what stands before the members. */
const places: Record<AnswerKind, { path: string; before: string }> = {
  models: { path: "/models", before: "data." },
  token: { path: "/copilot_internal/v2/token", before: "" },
  user: { path: "/copilot_internal/user", before: "" },
  answers: { path: "/chat/completions", before: "" },
  "quota headers": { path: "/chat/completions", before: "x-quota-snapshot-premium_interactions." },
  chat: { path: "/chat/completions", before: "" },
  responses: { path: "/responses", before: "" },
  messages: { path: "/v1/messages", before: "" },
};

/** Where a member is renamed: one of its names, in a setup that has it. */
interface Case {
  setup: SetupName;
  where: AnswerKind;
  /** As the demo writes it. */
  member: string;
  /** What is named as missing; undefined where another member says the same, so that nothing is unknown. */
  missing?: string;
  /** The agreed way out is a number that is higher, not one that is unknown. */
  isDearer?: true;
  stream?: boolean;
}

const readMembers: readonly ReadMember[] = [...answerMembers, ...usageMembers];
const rowOf = (where: AnswerKind, path: string): ReadMember =>
  readMembers.find((row) => row.where === where && row.path === path)!;

const of =
  (where: AnswerKind) =>
  (setup: SetupName, member: string, missing: string | undefined = member, more: Partial<Case> = {}): Case => ({
    ...{ setup, where, member },
    ...(missing === "" ? {} : { missing }),
    ...more,
  });

const [models, token, user] = [of("models"), of("token"), of("user")];
const prices = "billing.token_prices";
const premium = "quota_snapshots.premium_interactions";
const premiumRow = `${premium}|premium_models`;
const limits = "capabilities.limits";

const allCases: Case[] = [
  models("A", "id"),
  models("C", "capabilities"),
  models("C", "capabilities.type"),
  models("C", "capabilities.supports"),
  models("C", limits),
  models("C", `${limits}.max_context_window_tokens`),
  models("C", `${limits}.max_prompt_tokens`),
  models("C", `${limits}.max_output_tokens`),
  models("C", `${limits}.max_inputs`),
  models("C", "supported_endpoints"),
  models("C", "policy.state"),
  models("A", "billing"),
  models("C", "billing"),
  models("A", "billing.multiplier", "billing.token_prices|multiplier"),
  models("A", "billing.is_premium", ""),
  models("B", prices, "billing.token_prices|multiplier"),
  models("C", prices, "billing.token_prices|multiplier"),
  ...(["B", "mixed", "C"] as const).flatMap((setup): Case[] => {
    const cached = setup === "B" ? "cache_price" : "cache_read_price";
    const boundary = setup === "C" ? "max_prompt_tokens" : "context_max";
    return [
      models(setup, `${prices}.batch_size`),
      models(setup, `${prices}.default`),
      models(setup, `${prices}.default.input_price`),
      models(setup, `${prices}.default.output_price`),
      models(setup, `${prices}.default.${cached}`, `${prices}.default.cache_read_price|cache_price`),
      models(setup, `${prices}.default.cache_write_price`),
      models(setup, `${prices}.default.${boundary}`, `${prices}.default.max_prompt_tokens|context_max`, {
        isDearer: true,
      }),
      models(setup, `${prices}.long_context`),
      models(setup, `${prices}.long_context.input_price`),
      models(setup, `${prices}.long_context.output_price`),
      models(setup, `${prices}.long_context.${cached}`, `${prices}.long_context.cache_read_price|cache_price`),
    ];
  }),
  models("C", `${prices}.default.cache_write_1h_price`),
  token("A", "token"),
  token("A", "expires_at"),
  token("A", "refresh_in"),
  token("A", "endpoints"),
  token("A", "endpoints.api"),
  user("A", "copilot_plan"),
  user("A", "endpoints"),
  user("A", "endpoints.api"),
  user("A", "quota_snapshots", "quota_snapshots|limited_user_quotas"),
  user("legacy", "limited_user_quotas", "quota_snapshots|limited_user_quotas"),
  user("legacy", "limited_user_quotas.chat"),
  user("legacy", "monthly_quotas"),
  user("legacy", "monthly_quotas.chat"),
  user("A", "quota_reset_date", ""),
  user("legacy", "limited_user_reset_date", "quota_reset_date_utc|quota_reset_date|limited_user_reset_date"),
  user("A", premium, premiumRow),
  user("A", "quota_snapshots.chat"),
  user("B", "token_based_billing"),
  ...(["A", "B", "unlimited", "pooled", "overdrawn"] as const).flatMap((setup): Case[] => [
    user(setup, `${premium}.entitlement`, `${premiumRow}.entitlement`),
    user(setup, `${premium}.quota_remaining`, ""),
    user(setup, `${premium}.remaining`, ""),
    user(setup, `${premium}.percent_remaining`, ""),
    user(setup, `${premium}.unlimited`, `${premiumRow}.unlimited`),
    user(setup, `${premium}.overage_permitted`, `${premiumRow}.overage_permitted`),
    user(setup, `${premium}.overage_count`, `${premiumRow}.overage_count`),
  ]),
  user("pooled", `${premium}.has_quota`, `${premiumRow}.has_quota`),
  ...["ent", "ov", "ovPerm", "rst"].map((field) => of("quota headers")("A", field)),
  of("quota headers")("A", "rem", "rem|totRem"),
  of("quota headers")("C", "rem", ""),
  of("quota headers")("C", "totRem", ""),
  ...[false, true].flatMap((stream): Case[] => [
    ...["prompt_tokens", "completion_tokens", "prompt_tokens_details.cached_tokens"].map((name) =>
      of("chat")("C", `usage.${name}`, undefined, { stream }),
    ),
    of("chat")(
      "C",
      "usage.prompt_tokens_details.cache_write_tokens",
      "usage.prompt_tokens_details.cache_write_tokens|cache_creation_input_tokens",
      { stream },
    ),
    ...["total_tokens", "reasoning_tokens"].map((name) => of("chat")("gemini", `usage.${name}`, "", { stream })),
    of("chat")("C", "copilot_usage.total_nano_aiu", undefined, { stream }),
    ...[
      "input_tokens",
      "output_tokens",
      "input_tokens_details.cached_tokens",
      "input_tokens_details.cache_write_tokens",
      "output_tokens_details.reasoning_tokens",
    ].map((name) => of("responses")("codex", `usage.${name}`, undefined, { stream })),
    of("responses")("codex", "copilot_usage.total_nano_aiu", undefined, { stream }),
    ...["input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens"].map((name) =>
      of("messages")("claude", `usage.${name}`, undefined, { stream }),
    ),
    of("messages")("claude", "copilot_usage.total_nano_aiu", undefined, { stream }),
  ]),
];

const cases = drawn("losses", allCases, 12);

/** The page and the metrics list what is lost, of whatever kind: one of each kind is looked up there. */
const firstOf = new Map(cases.filter(({ missing }) => missing !== undefined).map((each) => [each.where, each]));

const baselines = new Map<string, Promise<unknown>>();
const baselineOf = ({ setup, where, stream }: Case): Promise<unknown> => {
  const key = `${setup} ${where} ${stream}`;
  const known = baselines.get(key) ?? read();
  baselines.set(key, known);
  return known;
  async function read() {
    await using proxy = await open(setup, clockOfAll);
    const numbers = await numbersAfter(where, setups[setup], proxy, stream ?? false);
    // As often as in a test of a member that answers may lack: the cache knows the prompt then.
    return where in bodies ? await numbersAfter(where, setups[setup], proxy, stream ?? false) : numbers;
  }
};
const clockOfAll = new Clock();

describe("a member that is read, and has another name now", () => {
  test.each(
    cases.map(
      (each) => [`${each.where} ${each.member} of ${each.setup}${each.stream ? ", streamed" : ""}`, each] as const,
    ),
  )("%s makes no number wrong, and the owner hears what is unknown", async (_, each) => {
    const { setup, where, member, missing, isDearer, stream = false } = each;
    const baseline = await baselineOf(each);
    const clock = new Clock();
    clock.at = clockOfAll.at;
    const { path, before } = places[where];
    const rename = { path, member: before + member, to: "renamed" };
    const row = missing === undefined ? undefined : rowOf(where, missing);
    expect([missing, row?.path]).toEqual([missing, missing]);
    const wasSeen = row?.isOptional || where in bodies;
    const upstream: { rename?: Rename } = wasSeen ? {} : { rename };
    await using proxy = await open(setup, clock, upstream);
    if (wasSeen) {
      await numbersAfter(where, setups[setup], proxy, stream);
      clock.at += 60_000;
      upstream.rename = rename;
    }
    const numbers = await numbersAfter(where, setups[setup], proxy, stream);
    if (!isDearer) expect(wrongIn(numbers, baseline)).toEqual([]);
    expect(proxy.app.losses.current.map((loss) => loss.member)).toEqual(missing === undefined ? [] : [missing]);
    if (row) await expectHeard(proxy, row);
    if (row && firstOf.get(where) === each) await expectShown(proxy, row);
  });

  test("is of every row of the table that the demo's answers have", () => {
    const tried = new Set(allCases.map(({ where, missing }) => `${where} ${missing}`));
    const untried = readMembers.map(({ where, path }) => `${where} ${path}`).filter((each) => !tried.has(each));
    expect(untried).toEqual([
      // What is left is stated three times.
      `user ${premiumRow}.quota_remaining|remaining|percent_remaining`,
      // No member of one: see below.
      "answers x-quota-snapshot-*",
    ]);
  });
});

test("answers without any header of a quota are heard of where they always had one", async () => {
  let isLost = false;
  const change = (answer: Response): Promise<Response> => {
    const changed = new Response(answer.body, answer);
    for (const name of [...changed.headers.keys()])
      if (isLost && name.startsWith("x-quota-snapshot-")) changed.headers.delete(name);
    return Promise.resolve(changed);
  };
  await using proxy = await startProxy({
    demo: { accounts: [structuredClone(octo)], change },
    config: { notices: { webhookUrl: webhook.url.href } },
  });
  const missing = async (asked: number) => {
    for (let turn = 0; turn < asked; turn++) await (await proxy.post(...bodies.chat!("gpt-5-mini", false))).text();
    return proxy.app.losses.current.map(({ member }) => member);
  };
  expect(await missing(3)).toEqual([]);
  isLost = true;
  // One answer, or two, may lack them.
  expect(await missing(2)).toEqual([]);
  expect(await missing(1)).toEqual(["x-quota-snapshot-*"]);
  await expectHeard(proxy, rowOf("answers", "x-quota-snapshot-*"));
  isLost = false;
  expect(await missing(1)).toEqual([]);
});

test("of what was never there it is said that it lacks, not that it is gone", () => {
  const saidOf = (...lists: JsonObject[]) => {
    const said: string[] = [];
    const losses = new Losses({ logger: { warn: (line) => void said.push(line), info: () => {} }, now: Date.now });
    for (const item of lists) losses.inspectModels("octo", [item]);
    return said.filter((line) => / capabilities:/.test(line)).map((line) => line.split(" capabilities:")[0]);
  };
  const [having, without] = [{ id: "m", capabilities: {} }, { id: "m" }];
  expect(saidOf(without)).toEqual(["GitHub Copilot's model list lacks"]);
  expect(saidOf(having, without)).toEqual(["GitHub Copilot's model list no longer has"]);
});

async function expectHeard({ app, lines }: RunningProxy, { affects }: ReadMember) {
  const said = lines.filter((line) => /\b(?:no longer has|lacks)\b/.test(line) && line.includes(`${affects} since`));
  expect(said).toHaveLength(1);
  received.length = 0;
  await app.notices.check();
  await app.notices.check();
  expect(received.filter((text) => text.includes(`${affects} since`))).toHaveLength(1);
  expect(lines.filter((line) => line.includes(`${affects} since`))).toHaveLength(1);
}

async function expectShown({ url }: RunningProxy, { where, path: member }: ReadMember) {
  const page = await (await fetch(`${url}/admin/health`)).text();
  expect(page).toContain("Missing in the upstream");
  expect(page).toContain(`<code>${member}</code>`);
  const samples = readSamples(await (await fetch(`${url}/metrics`)).text());
  expect(valueIn(samples, "dragoman_upstream_missing", { where, member })).toBe(1);
}

describe("an upstream that is as it was misses nothing", () => {
  const listNames = ["A", "B", "mixed", "C"] as const;
  const accounts = [
    ...[octo, work, plus, credits, pooled, legacy, ...Object.values(autoAccounts())],
    ...Object.values(quotas).map((quota): DemoAccount => ({ ...octo, quota: quota() })),
  ];
  const each = accounts.flatMap((account) => listNames.map((list) => ({ list, account })));

  test("in quota, models and replies of each account of each list", async () => {
    for (const { list, account } of drawn("accounts", each, 12)) {
      await using proxy = await startProxy({ demo: { ...lists[list], accounts: [structuredClone(account)] } });
      await readEverything(proxy, [chatModel({ list })]);
      expect(proxy.app.losses.current, `${account.login} of ${list}`).toEqual([]);
    }
  });

  test.each(drawn("lists", listNames, 2))("in replies of each vendor of %s, whole and streamed", async (name) => {
    await using proxy = await startProxy({ demo: { ...lists[name], accounts: [structuredClone(octo)] } });
    const ofA = ["gpt-5-mini", "claude-haiku-4.5", "gemini-2.5-pro", "gpt-5.4"];
    const others = [exampleModels.small, "kimi-k3", "claude-haiku-4.5", exampleModels.flash, exampleModels.gpt];
    await readEverything(proxy, name === "A" ? ofA : others);
    await (await proxy.post("/v1/embeddings", { model: "text-embedding-3-small", input: "Hello" })).text();
    expect(proxy.app.losses.current).toEqual([]);
  });

  async function readEverything({ app, post }: RunningProxy, asked: string[]) {
    await app.accounts[0]!.quota();
    await app.catalogue.models();
    for (const model of asked)
      for (const body of Object.values(bodies))
        for (const stream of [true, false, true]) await (await post(...body(model, stream))).text();
  }
});
