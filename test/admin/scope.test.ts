/**
 * Scenario: what a member's requests may use, member by member; and that nothing of the owner's can be reached from it:
 * not by a program that holds it, nor by a request over HTTP.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import type { App, Scope, Server } from "../../src/parts/app";
import type { TestMember } from "../support/members";
import { startProvider, type TestProvider } from "../support/provider";
import { startTeamApp, type TeamApp } from "../support/team-app";
import { describeWithMembers } from "../support/teams";

/** The compiler proves it: each of these lines must be an error. */
export const unreachable = (scope: Scope, server: Server, ofMember: (scope: Scope) => void): unknown[] => [
  // @ts-expect-error the owner's keys
  scope.clientKeys,
  // @ts-expect-error the saved accounts, with their tokens
  scope.accountStore,
  // @ts-expect-error everybody's accounts
  scope.allAccounts,
  // @ts-expect-error the admin token, and the keys of the environment
  scope.environment,
  // @ts-expect-error everybody's keys
  scope.members,
  // @ts-expect-error the sign-ins of all pages
  scope.pageState,
  // @ts-expect-error the channels, with the webhook's secret
  scope.notices,
  // @ts-expect-error it has the addresses and keys
  scope.config.current.providers,
  // @ts-expect-error a secret
  scope.config.current.anthropicApiKey,
  // @ts-expect-error the owner's keys
  scope.config.current.auth,
  // @ts-expect-error it has a key
  scope.config.current.webSearchEngine,
  // @ts-expect-error the file
  scope.config.stored,
  // @ts-expect-error the owner is there only for the owner
  scope.owner.config,
  // @ts-expect-error the server is nobody's scope
  ofMember(server),
];

const secrets = {
  provider: "sk-provider-of-the-owner",
  anthropic: "sk-ant-of-the-owner-only",
  engine: "brave-key-of-the-owner",
  webhook: "webhook-secret-of-the-owner",
  clientKey: "client-key-of-the-owner-0001",
  adminToken: "admin-token-of-the-owner",
};

describeWithMembers("what a member's requests may use", (place) => {
  let team: TeamApp;
  let provider: TestProvider;
  let anna: TestMember;
  let ben: TestMember;
  let scope: Scope;

  beforeAll(async () => {
    provider = startProvider({ key: secrets.provider, auth: "x-api-key" });
    team = await startTeamApp(place, {
      env: { ADMIN_TOKEN: secrets.adminToken, DRAGOMAN_ANTHROPIC_API_URL: provider.url },
    });
    await team.app.config.change({
      providers: { theirs: { type: "anthropic", baseUrl: provider.url, apiKey: secrets.provider } },
      anthropicApiKey: secrets.anthropic,
      webSearchEngine: { name: "brave", apiKey: secrets.engine, url: provider.url },
      notices: { webhookUrl: "http://127.0.0.1:9/", webhookSecret: secrets.webhook },
      auth: { apiKeys: [{ name: "owners-key", key: secrets.clientKey }] },
      fallbacks: { "gpt-5-mini": ["theirs/claude-x", "gpt-4.1"] },
    });
    anna = await team.addMember("anna", "anna-hub");
    ben = await team.addMember("ben", "ben-hub");
    scope = team.app.forMember(anna.id);
  });
  afterAll(async () => {
    await team[Symbol.asyncDispose]();
    await provider[Symbol.asyncDispose]();
  });

  const ask = (path: string, key: string, body?: unknown) =>
    fetch(team.url + path, {
      headers: { "x-api-key": key, authorization: `Bearer ${key}`, "content-type": "application/json" },
      ...(body !== undefined && { method: "POST", body: JSON.stringify(body) }),
    });

  test("a member's scope has the members that are listed here and no others", () => {
    expect(Object.getPrototypeOf(scope)).toBe(Object.prototype);
    const names = `
      accounts affinity anthropicCounter auto billedPrices breaker budgets cacheWatch catalogue config copilot copilotCounter demo drift
      exchangeMetrics heldBodies history inFlight isolation lessons limits logger losses membership now ownAccounts owner
      pool providerModels providers recentItems running searchEngine sessionPrompts sockets stopping tokenCounts tracing
      unsupportedParams version waitingRoom`;
    expect(Object.keys(scope).sort()).toEqual(names.trim().split(/\s+/));
    expect([scope.owner, scope.anthropicCounter]).toEqual([undefined, undefined]);
    expect(team.app.forMember(null).owner).toBe(team.app as App);
  });

  test("reads these keys of the config, and a new one only when it is listed", () => {
    const names = `
      accountAffinity autoWhenOnly claudeCodeSettings fallbacks freeModelRouting longestWaitMinutes maxPromptTokens
      modelAliases neverOverage promptCache retentionDays routes tokenEstimateMultiplier toolSearch
      useResponsesApiWebSearch webSearchModel whenLimited`;
    expect(Object.keys(scope.config.current).sort()).toEqual(names.trim().split(/\s+/));
    expect(scope.config.current.fallbacks).toEqual({ "gpt-5-mini": ["gpt-4.1"] });
  });

  test("leads to no secret of the owner, and to no account or key of anybody else", () => {
    const texts = textsFrom(scope);
    expect(texts).toContain("github.com/anna-hub");
    const foreign = [...Object.values(secrets), "owners-key", "ben-hub", ben.id, ben.key, provider.url];
    for (const secret of foreign) expect(texts.filter((text) => text.includes(secret))).toEqual([]);
    // The same walk finds them where they are.
    const all = textsFrom(team.app);
    for (const secret of [secrets.provider, secrets.anthropic, secrets.engine, secrets.adminToken, "ben-hub"])
      expect(all.some((text) => text.includes(secret))).toBe(true);
    expect(scope.membership!.findKey([ben.key])).toBeUndefined();
    expect(scope.membership!.findKey([anna.key])?.name).toBe("anna/key-1");
  });

  test("changes nobody else's accounts and keys", async () => {
    const { ownAccounts, membership } = scope;
    for (const attack of [
      () => ownAccounts.pause("github.com/ben-hub", true),
      () => ownAccounts.arrange(["github.com/ben-hub"]),
      () => ownAccounts.move("github.com/ben-hub", 1),
      () => ownAccounts.remove("github.com/ben-hub"),
      () => ownAccounts.remove("ben-hub"),
      () => membership!.revokeKey("ben/key-1"),
      () => membership!.revokeKey("owners-key"),
    ])
      await expect(attack()).rejects.toMatchObject({ kind: "not_found" });
    expect(team.app.allAccounts.map(({ key, state }) => [key, state.name === "paused"])).toEqual([
      ["github.com/anna-hub", false],
      ["github.com/ben-hub", false],
    ]);
  });

  test("the owner's search engine serves a member's search too, who learns neither its address nor its key", async () => {
    const before = provider.seen.length;
    const messages = [{ role: "user", content: "Please search the web for red pandas." }];
    const tools = [{ type: "web_search_20250305", name: "web_search" }];
    const answer = await ask("/v1/messages", anna.key, {
      model: "claude-sonnet-4.6",
      max_tokens: 100,
      messages,
      tools,
    });
    const text = await answer.text();
    expect([answer.status, text]).toEqual([200, expect.stringContaining("web_search_tool_result")]);
    const [search] = provider.seen.slice(before);
    expect(Object.values(search!.headers)).toContain(secrets.engine);
    expect(text).not.toMatch(new RegExp(`${secrets.engine}|${RegExp.escape(provider.url)}`));
  });

  test("over HTTP: no provider is called, no key of the owner is spent or named, whatever a member asks", async () => {
    const before = provider.seen.length;
    const messages = [{ role: "user", content: "hi" }];
    const asked = (model: string) => ({ model, messages, max_tokens: 9 });
    const attempts: [path: string, body?: unknown][] = [
      ["/theirs/v1/messages", asked("claude-x")],
      ["/theirs/v1/messages/count_tokens", asked("claude-x")],
      ["/theirs/v1/models"],
      ["/v1/messages", asked("theirs/claude-x")],
      ["/v1/chat/completions", asked("theirs/claude-x")],
      ["/v1/responses", { model: "theirs/claude-x", input: "hi" }],
      ["/v1/messages/count_tokens", asked("claude-sonnet-4.6")],
      ["/v1/models"],
      ["/v1/models/theirs%2Fclaude-x"],
      ["/usage"],
      ...["keys", "accounts", "models", "budgets", "requests", "statistics", "config", "members", "meta"].map(
        (name): [string] => [`/api/admin/${name}`],
      ),
      ["/api/admin/config", { providers: {} }],
      ["/api/admin/keys/owners-key/revoke", {}],
      ["/api/admin/accounts/remove", { account_key: "github.com/ben-hub" }],
      ["/admin/keys"],
    ];
    const hidden = [...Object.values(secrets), "owners-key", "ben-hub", ben.key];
    for (const [path, body] of attempts) {
      const answer = await ask(path, anna.key, body);
      const text = await answer.text();
      // What the member named may come back in the sentence that refuses it.
      const named = JSON.stringify([path, body ?? null]);
      for (const secret of hidden.filter((each) => !named.includes(each)))
        expect(`${path}: ${text}`).not.toContain(secret);
    }
    expect(provider.seen.slice(before)).toEqual([]);
    // The owner's request reaches both.
    expect((await ask("/theirs/v1/messages", secrets.clientKey, asked("claude-x"))).status).toBe(200);
    await ask("/v1/messages/count_tokens", secrets.clientKey, asked("claude-sonnet-4.6"));
    expect(provider.seen.slice(before).map(({ path }) => path)).toEqual(["/v1/messages", "/v1/messages/count_tokens"]);
    expect(team.app.clientKeys.map(({ name }) => name)).toEqual(["owners-key"]);
  });
});

/** All texts that can be reached by the properties of an object, getters, maps and sets included. */
function textsFrom(root: object): string[] {
  const texts: string[] = [];
  const seen = new Set<unknown>();
  const waiting: unknown[] = [root];
  while (waiting.length > 0) {
    const value = waiting.pop();
    if (typeof value === "string") texts.push(value);
    if ((typeof value !== "object" && typeof value !== "function") || value === null || seen.has(value)) continue;
    seen.add(value);
    if (value instanceof Map || value instanceof Set) waiting.push(...[...value].flat());
    if (ArrayBuffer.isView(value)) continue;
    for (let at: object | null = value; at && at !== Object.prototype; at = Object.getPrototypeOf(at))
      for (const [name, descriptor] of Object.entries(Object.getOwnPropertyDescriptors(at)))
        if (name === "__proto__" || name === "constructor") continue;
        else if ("value" in descriptor) waiting.push(name, descriptor.value);
        else waiting.push(readSafely(descriptor.get!, value));
  }
  return texts;
}

function readSafely(get: () => unknown, of: object): unknown {
  try {
    return get.call(of);
  } catch {
    return undefined;
  }
}
