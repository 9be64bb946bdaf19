/** Pairs: what a key may use and what is shown of keys and members, from `fixtures/pairs/keys/`. */
import { parseConfig } from "../../../src/config/schema";
import { ProxyError } from "../../../src/lib/errors";
import type { Costs } from "../../../src/lib/money";
import {
  type ClientKey,
  clientKeysOf,
  findClientKey,
  hasModelLimits,
  isExpired,
  keyNotFound,
  mayUse,
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
import { memberNotFound } from "../../../src/people/keys/members";
import { member, noLimits } from "../../support/members";
import { outOf, testPairs } from "../../support/pairs";

const now = Date.UTC(2026, 10, 11, 12);
const keyOf = (given: Partial<ClientKey> = {}): ClientKey => ({
  ...clientKeysOf([{ name: "ci", key: "k-ci-0123456789" }], undefined)[0]!,
  ...given,
});

type Used = { request_count: number; cost: Costs["cost"]; last_at_ms: number };

const people = ["Anna", "ben", "cleo"].map((name, at) => member({ name, id: name, createdAt: at }));

/** Anna has two keys, ben an account, cleo an invitation. @param used What each has used; `null` where that takes too long. */
function listed(used: Record<string, Used> | null) {
  const accountsOf = async () => new Map([["ben", [{ account_key: "github.com/ben", state: "ready" }]]]);
  const groups = Object.entries(used ?? {}).map(([name, sums]) => ({
    ...{ key: { member: name }, cost_at_least: false },
    ...sums,
  }));
  return {
    members: {
      ...{ hearAll() {}, requireHeard() {}, list: () => people },
      keyCount: (id: string) => (id === "Anna" ? 2 : 0),
      openInvitations: async () => [{ member: "cleo", expiresAt: 99 }],
      accountsOf,
    },
    accountsOf,
    history: {
      statistics: async () => (used ? { groups } : Promise.reject(new ProxyError("timeout", "Too slow."))),
      lastOf: () => 7,
    },
  };
}

testPairs("keys", {
  /** The keys of the config, and that of the environment: what is read of each. */
  read: (stored: Parameters<typeof clientKeysOf>[0], legacy: string | null) =>
    clientKeysOf(stored, legacy ?? undefined).map(({ digest, ...key }) => key),
  /** How far a key's end is away, in ms, and what is known of it: whether it has ended, and what its client reads. */
  async expired(left: number | null, given: Partial<ClientKey>) {
    const key = keyOf({ ...given, expiresAt: left === null ? null : now + left });
    return [isExpired(key, now), await outOf(() => requireUnexpired(key, now))];
  },
  pattern: (pattern: string, ...models: string[]) =>
    models.filter((model) => mayUse(clientKeysOf([{ name: "x", key: "k", models: [pattern] }], undefined)[0], model)),
  /** A key, or none, by which Auto is asked: whether gpt-4.1 may be chosen, whether it has limits, and what its client reads. */
  async auto(given: Partial<ClientKey> | null) {
    const key = given ? keyOf(given) : undefined;
    const refusal = await outOf(() => requireAutoChoice(key, "auto", "gpt-4.1"));
    return [mayUseByAuto(key, "auto", "gpt-4.1"), hasModelLimits(key), refusal];
  },
  /** Whether a key was revoked while its request was read: what its client reads, of a model and of Auto's. */
  revoked(isGone: boolean) {
    const key = keyOf({ isRevoked: () => isGone });
    const all = [() => requireModel(key, "gpt-4.1"), () => requireAutoChoice(key, "auto", "gpt-4.1")];
    return Promise.all(all.map(outOf));
  },
  /** Keys that a request brings: the name of the one that counts. */
  found: (keys: Parameters<typeof clientKeysOf>[0], sent: string[]) =>
    findClientKey(sent, clientKeysOf(keys, undefined))?.name,
  unknown: (name: string) => [keyNotFound(name).message, memberNotFound(name).message],
  /** Keys, what else is known, and when those with a name were last used. */
  list: (keys: Partial<ClientKey>[], more: object, lastUsed?: Record<string, number>) =>
    keyList(keys.map(keyOf), {
      ...{ now, required: true, servedWithout: "nobody", ...more },
      ...(lastUsed && { lastUsed: (name: string) => lastUsed[name] ?? null }),
    }),
  /** How many keys the config has, the one of the environment, whether members need keys, and who may come without: who is served when the keys are gone, and what that means. */
  last(count: number, legacy: string | null, needKeys: boolean, openTo: OpenTo) {
    const config = { current: parseConfig({ auth: { apiKeys: Array(count).fill("k-one-0123456789") } }) };
    const environment = { clientKey: legacy ?? undefined };
    const served = servedWithoutKeys({ config, environment, members: { needKeys }, openTo });
    return [served, meaningOfLastKey(served)];
  },
  /** What is asked for, and what each has used. */
  async order(sort: MemberOrder, used: Record<string, Used>) {
    const { items } = await memberList(listed(used), { sort, offset: 0, limit: 9 }, now);
    return items.map(({ name }) => name);
  },
  members: (page: object, used: Record<string, Used>) =>
    memberList(listed(used), { sort: "name", offset: 0, limit: 9, ...page }, now),
  slow: () => memberItemOf(listed(null), people[0]!, now),
  /** What is other than of a member with a key and an account that works. */
  trouble: (given: Partial<MemberItem>) =>
    memberTrouble({
      ...{ name: "anna", id: "m1", created_at_ms: 0, ...noLimits, keys: 1, request_count: 0, cost: {} },
      ...{ cost_at_least: false, last_request_at_ms: null, invitation_expires_at_ms: null },
      accounts: [{ account_key: "github.com/anna", state: "ready" }],
      ...given,
    }),
  /** What the owner sets of a member, as it is taken; nothing where it is not. */
  limits: (sent: object) => memberLimitsSchema().safeParse(sent).data,
  month: (at: string) => new Date(startOfMonth(Date.parse(at))).toISOString(),
});
