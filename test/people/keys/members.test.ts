/** Rows: what is shown of members and keys, and the limits that the owner may set. */
import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import { parseConfig } from "../../../src/config/schema";
import { openConfig } from "../../../src/config/store";
import { ProxyError } from "../../../src/lib/errors";
import type { Costs } from "../../../src/lib/money";
import {
  type ClientKey,
  clientKeysOf,
  findClientKey,
  hasModelLimits,
  isExpired,
  isFromEnvironment,
  keyNotFound,
  mayUseByAuto,
  type OpenTo,
  requireAutoChoice,
  requireModel,
  requireUnexpired,
} from "../../../src/people/keys/client-keys";
import { keyList, meaningOfLastKey, servedWithoutKeys } from "../../../src/people/keys/key-list";
import { memberLimitsSchema } from "../../../src/people/keys/member-fields";
import {
  type MemberItem,
  type MemberOrder,
  memberItemOf,
  memberList,
  memberTrouble,
  startOfMonth,
} from "../../../src/people/keys/member-list";
import { type Member, maxMemberKeys, memberNotFound } from "../../../src/people/keys/members";
import { createKey, revokeKey } from "../../../src/people/keys/stored-keys";
import { member, noLimits } from "../../support/members";
import { temporaryFolder } from "../../support/temporary-folder";

const now = Date.UTC(2026, 10, 11, 12);
const keyOf = (given: Partial<ClientKey> = {}): ClientKey => ({
  ...clientKeysOf([{ name: "ci", key: "k-ci-0123456789" }], undefined)[0]!,
  ...given,
});
const thrownBy = (work: () => unknown): Error | undefined => {
  try {
    work();
  } catch (thrown) {
    return thrown as Error;
  }
  return undefined;
};

describe("a key", () => {
  test("a key of the environment counts only while the config has none", () => {
    expect(isFromEnvironment([], "k-env")).toBe(true);
    expect(isFromEnvironment([], undefined)).toBe(false);
    expect(isFromEnvironment(["k-one-0123456789"], "k-env")).toBe(false);
    expect(clientKeysOf([], "k-env")).toMatchObject([{ name: null, limited: false }]);
    expect(clientKeysOf([], undefined)).toEqual([]);
    expect(clientKeysOf(["k-one-0123456789", "k-two-0123456789"], "k-env")).toHaveLength(2);
  });

  test("a key is limited if it has models or budgets of its own", () => {
    const limited = (given: object) => clientKeysOf([{ name: "ci", key: "k", ...given }], undefined)[0]!.limited;
    expect(limited({})).toBe(false);
    expect(limited({ budgets: [] })).toBe(false);
    expect(limited({ models: ["gpt-*"] })).toBe(true);
    expect(limited({ budgets: [{ unit: "requests", limit: 1, per: "day" }] })).toBe(true);
  });

  test("expires at its time, not after it", () => {
    const key = keyOf({ expiresAt: now });
    expect(isExpired(key, now - 1)).toBe(false);
    expect(isExpired(key, now)).toBe(true);
    expect(isExpired(keyOf(), now)).toBe(false);
    expect(thrownBy(() => requireUnexpired(key, now - 1))).toBeUndefined();
    expect(thrownBy(() => requireUnexpired(keyOf(), now))).toBeUndefined();
    expect(thrownBy(() => requireUnexpired(key, now))?.message).toBe(
      "The client key `ci` expired on 2026-11-11. Ask the owner of this dragoman for a new one.",
    );
    const members = keyOf({ expiresAt: now, member: "m1" });
    expect(thrownBy(() => requireUnexpired(members, now))?.message).toContain("Make a new one on the page Keys");
  });

  test.each<[string, Partial<ClientKey> | undefined, boolean]>([
    ["no key", undefined, true],
    ["a key without limits", {}, true],
    ["a key that may use the model", { models: ["gpt-*"] }, true],
    ["a key that may use auto, in any case", { models: ["Auto"] }, true],
    ["a key that may use another model", { models: ["claude-*"] }, false],
    ["a key whose member may use another model", { models: ["gpt-*"], memberModels: ["claude-*"] }, false],
    ["a key of a member who may use auto", { models: ["auto"], memberModels: ["claude-*", "auto"] }, true],
    [
      "a key that may use another one, of a member who may use it",
      { models: ["claude-*"], memberModels: ["gpt-*"] },
      false,
    ],
  ])("Auto may choose gpt-4.1 for %s: %#", (_, given, expected) => {
    const key = given && keyOf(given);
    expect(mayUseByAuto(key, "auto", "gpt-4.1")).toBe(expected);
    expect(thrownBy(() => requireAutoChoice(key, "auto", "gpt-4.1")) === undefined).toBe(expected);
    expect(hasModelLimits(key)).toBe(given !== undefined && Object.keys(given).length > 0);
  });

  test("that was revoked while its request was read is refused whatever it may use", () => {
    const key = keyOf({ isRevoked: () => true });
    const asAuto = (of: typeof key, model: string) => requireAutoChoice(of, "auto", model);
    for (const require of [requireModel, asAuto])
      expect(thrownBy(() => require(key, "gpt-4.1"))?.message).toContain("was revoked before its request was sent");
    expect(thrownBy(() => requireModel(keyOf({ isRevoked: () => false }), "gpt-4.1"))).toBeUndefined();
  });

  test("a key is named in an error from its first letter on, and no longer than a name may be", () => {
    expect(keyNotFound("ci").message).toBe("There is no client key `ci`.");
    expect(keyNotFound("x".repeat(200)).message).toBe(`There is no client key \`${"x".repeat(127)}\`.`);
    expect(memberNotFound("anna").message).toStartWith("There is no member anna; ");
    expect(memberNotFound("x".repeat(200)).message).toStartWith(`There is no member ${"x".repeat(63)}; `);
  });
});

test("a key is made once for a name in any case, beside those that have none, and only a named one is revoked", async () => {
  const folder = temporaryFolder();
  const config = openConfig(join(folder, "config.json"));
  try {
    await config.change({ auth: { apiKeys: ["k-plain-0123456789"] } });
    const key = await createKey(config, { name: "CI" });
    await createKey(config, { name: "laptop", models: ["gpt-*"], expires_at: "2027-01-01" });
    await expect(createKey(config, { name: " ci " })).rejects.toThrow("There is a client key ` ci ` already.");
    await expect(revokeKey(config, "another")).rejects.toThrow("There is no client key `another`.");
    const keys = () => clientKeysOf(config.current.auth.apiKeys, undefined);
    expect(keys().map(({ name, models }) => [name, models])).toEqual([
      [null, null],
      ["CI", null],
      ["laptop", ["gpt-*"]],
    ]);
    expect(findClientKey([key], keys())?.name).toBe("CI");
    expect(findClientKey(["k-plain-0123456789", key], keys())?.name).toBeNull();
    expect(findClientKey([`${key}x`, ""], keys())).toBeUndefined();
    await revokeKey(config, "ci");
    expect(keys().map(({ name }) => name)).toEqual([null, "laptop"]);
    expect(JSON.stringify(config.current)).not.toContain(key);
  } finally {
    config.close();
  }
});

describe("the list of keys", () => {
  const options = { now, required: true, servedWithout: "nobody" } as const;

  test("the list of keys shows what each may use, until when, and when it was last used", () => {
    const keys = [keyOf({ models: ["gpt-*"], expiresAt: now }), keyOf({ name: null })];
    const lastUsed = (name: string) => (name === "ci" ? 7 : 8);
    expect(keyList(keys, { ...options, lastUsed }).items).toEqual([
      { name: "ci", models: ["gpt-*"], expires_at_ms: now, expired: true, last_used_at_ms: 7 },
      { name: null, models: null, expires_at_ms: null, expired: false, last_used_at_ms: null },
    ]);
    expect(keyList(keys, options).items[0]!.last_used_at_ms).toBeNull();
  });

  test("the list of keys is said to be the environment's only where it is, and has limits only for a member", () => {
    expect(keyList([], options)).toEqual({
      ...{ items: [], required: true, served_without: "nobody", from_environment: false, limits: null },
    });
    expect(keyList([], { ...options, fromEnvironment: true }).from_environment).toBe(true);
    const member = { models: ["gpt-*"], key_days: 30 };
    expect(keyList([], { ...options, member }).limits).toEqual({ models: ["gpt-*"], key_days: 30, max_keys: 20 });
  });

  test.each<[string, number, boolean, boolean, OpenTo, ReturnType<typeof servedWithoutKeys>]>([
    ["a key of the environment behind the config's", 1, true, false, "nobody", "others"],
    ["only the key of the environment", 0, true, false, "this machine", "anyone"],
    ["members who need keys", 1, false, true, "this machine", "others"],
    ["nothing else, where that means everybody", 1, false, false, "anyone", "anyone"],
    ["nothing else, where that means nobody", 1, false, false, "nobody", "nobody"],
  ])("the list of keys says who is served without it: %s", (_, count, hasLegacy, needKeys, openTo, expected) => {
    const config = { current: parseConfig({ auth: { apiKeys: Array(count).fill("k-one-0123456789") } }) };
    const environment = { clientKey: hasLegacy ? "k-env" : undefined };
    const served = servedWithoutKeys({ config, environment, members: { needKeys }, openTo });
    expect(served).toBe(expected);
    expect(meaningOfLastKey(served) === undefined).toBe(expected === "others");
  });
});

describe("the list of members", () => {
  const [anna, ben, cleo] = ["Anna", "ben", "cleo"].map((name, at) =>
    member({ name, id: `m${at}`, createdAt: at }),
  ) as [Member, Member, Member];
  const used = (request_count: number, cost: Costs["cost"], last_at_ms: number) => ({
    ...{ request_count, cost, cost_at_least: false, last_at_ms },
  });
  const historyOf = (usage: ReadonlyMap<string, ReturnType<typeof used>>) => ({
    statistics: async () => ({ groups: [...usage].map(([member, sums]) => ({ key: { member }, ...sums })) }),
    lastOf: () => 7,
  });
  const usage = new Map([
    [anna.id, used(5, { premium: 2e9 }, 30)],
    [ben.id, used(5, { credits: 7 }, 40)],
  ]);
  const members = {
    hearAll() {},
    requireHeard() {},
    list: () => [anna, ben, cleo],
    keyCount: (id: string) => (id === anna.id ? 2 : 0),
    accountsOf: async () => new Map([[ben.id, [{ account_key: "github.com/ben", state: "ready" }]]]),
    openInvitations: async () => [{ member: cleo.id, expiresAt: 99 }],
  };
  const listed = { members, accountsOf: members.accountsOf, history: historyOf(usage) };
  const page = (given: object) => memberList(listed, { sort: "name", offset: 0, limit: 9, ...given }, now);
  const names = async (given: object) => (await page(given)).items.map(({ name }) => name);

  test("the list of members is in the order of names, or by what was used, the largest first", async () => {
    expect(await names({})).toEqual(["Anna", "ben", "cleo"]);
    expect(await names({ sort: "requests" })).toEqual(["Anna", "ben", "cleo"]);
    expect(await names({ sort: "cost" })).toEqual(["ben", "Anna", "cleo"]);
    expect(await names({ sort: "last" })).toEqual(["ben", "Anna", "cleo"]);
  });

  test("a member of the least use comes before those of none, and those of equal use in the order of names", async () => {
    const least = new Map([
      [ben.id, used(1, {}, 1)],
      [cleo.id, used(1, { premium: 1 }, 1)],
    ]);
    const byLeast = async (sort: MemberOrder) =>
      (await memberList({ ...listed, history: historyOf(least) }, { sort, offset: 0, limit: 9 }, now)).items.map(
        ({ name }) => name,
      );
    expect(await byLeast("requests")).toEqual(["ben", "cleo", "Anna"]);
    expect(await byLeast("cost")).toEqual(["cleo", "Anna", "ben"]);
    expect(await byLeast("last")).toEqual(["ben", "cleo", "Anna"]);
  });

  test("the list of members has a page of those whose names have a part, in any case, and counts all of them", async () => {
    expect(await names({ name: "N" })).toEqual(["Anna", "ben"]);
    expect(await page({ offset: 1, limit: 1 })).toMatchObject({ items: [{ name: "ben" }], total: 3 });
    expect(await page({ name: "x" })).toMatchObject({ items: [], total: 0, since_ms: Date.UTC(2026, 10, 1) });
  });

  test("the list of members has what each has: nothing used is 0, and what is not known is null", async () => {
    const { items } = await page({});
    expect(items).toMatchObject([
      { keys: 2, accounts: [], invitation_expires_at_ms: null, request_count: 5, cost: { premium: 2e9 } },
      { keys: 0, accounts: [{ state: "ready" }], cost: { credits: 7 }, last_request_at_ms: 40 },
      { invitation_expires_at_ms: 99, request_count: 0, cost: {}, cost_at_least: false, last_request_at_ms: 7 },
    ]);
    const statistics = () => Promise.reject(new ProxyError("timeout", "Too slow."));
    const slow = { ...listed.history, statistics };
    expect(await memberItemOf({ ...listed, history: slow }, anna, now)).toMatchObject({
      request_count: null,
      ...{ cost: {}, cost_at_least: true },
      last_request_at_ms: 7,
    });
  });
});

describe("a member", () => {
  const item = (given: Partial<MemberItem>): MemberItem => ({
    ...{ name: "anna", id: "m1", created_at_ms: 0, ...noLimits, keys: 1, request_count: 0 },
    ...{
      cost: {},
      cost_at_least: false,
      last_request_at_ms: null,
      invitation_expires_at_ms: null,
    },
    accounts: [{ account_key: "github.com/anna", state: "ready" }],
    ...given,
  });
  const failed = { account_key: "github.com/anna", state: "failed" };
  test.each<[string, Partial<MemberItem>, string | undefined]>([
    ["with a key and an account has no trouble", {}, undefined],
    ["without an account", { accounts: [] }, "has no account and no open invitation"],
    ["without an account who is invited has no trouble", { accounts: [], invitation_expires_at_ms: 1 }, undefined],
    ["without a key", { keys: 0 }, "has no key, so cannot sign in"],
    ["without a key who is invited has no trouble", { keys: 0, invitation_expires_at_ms: 1 }, undefined],
    ["whose accounts all failed", { accounts: [failed] }, "has no account that works"],
    [
      "of whose accounts one works has no trouble",
      { accounts: [failed, { account_key: "github.com/ben", state: "cooling" }] },
      undefined,
    ],
    ["with the most keys", { keys: maxMemberKeys }, "has 20 keys, which is the most"],
    ["with one key less has no trouble", { keys: maxMemberKeys - 1 }, undefined],
  ])("%s", (_, given, expected) => {
    const trouble = memberTrouble(item(given));
    if (expected === undefined) expect(trouble).toBeUndefined();
    else expect(trouble).toStartWith(expected);
  });

  test("a member is given models and a life of keys from a day to ten years, or none", () => {
    const read = (sent: object) => memberLimitsSchema().safeParse(sent);
    for (const key_days of [1, 3_650, null]) expect(read({ key_days }).success, `${key_days}`).toBe(true);
    for (const key_days of [0, 3_651, 1.5, -1]) expect(read({ key_days }).success, `${key_days}`).toBe(false);
    for (const same of [{}, { key_days: 30 }, { key_days: null, models: null }, { models: ["gpt-*"] }])
      expect(read(same).data).toEqual(same);
    expect(read({ models: ["gpt-*", "*"] }).data).toEqual({ models: null });
  });

  test("a member is shown what was used since the first of the month in UTC", () =>
    expect(startOfMonth(Date.parse("2026-12-31T23:59:59Z"))).toBe(Date.UTC(2026, 11, 1)));
});
