/** Client keys: who may call, with which models, and until when. Keys are compared by digest, so a stored hash is enough. */

import type { Environment } from "../../config/environment";
import type { Config } from "../../config/schema";
import type { ConfigStore } from "../../config/store";
import type { Awaitable } from "../../lib/awaitable";
import { ProxyError } from "../../lib/errors";
import { utcDay } from "../../lib/format";
import type { Visitor } from "../../lib/net/in/caller";
import { sha256 } from "../../lib/net/in/credentials";

export interface ClientKey {
  /** Null for a key that the config has as plain text without a name. */
  name: string | null;
  /** The id of the member whose key it is; null for the owner's. */
  member: string | null;
  /** SHA-256 of the key. */
  digest: Buffer;
  /** Patterns of the models that the key may use; null for all models. */
  models: readonly string[] | null;
  /** The same for all keys of the member; a model has to pass both. */
  memberModels: readonly string[] | null;
  /** Its requests use no other account: `host/login` each. Missing where all are used. */
  accounts?: readonly string[] | undefined;
  /** Timestamp in milliseconds; null if the key does not expire. */
  expiresAt: number | null;
  /** The key may not do everything: it has models or budgets. */
  limited: boolean;
  /** A token of a sign-in from a tool, which the tool renews. */
  isShortLived?: true;
  /** Whether it was revoked since it was sent. */
  isRevoked?(): boolean;
  /** Makes the answer of `isRevoked` a second old at most; missing where it always is. @throws ProxyError `unable` */
  hear?(): Awaitable<void>;
}

/** Who is served without a key while there is none. */
export type OpenTo = "anyone" | "this machine" | "nobody";

/** A caller, and the client key that it sent; undefined if none is configured. */
export interface KeyedCaller extends Visitor {
  key?: ClientKey;
}

type StoredKey = Config["auth"]["apiKeys"][number];

/** @param legacy The key of the environment, which keys of the config replace. */
export function clientKeysOf(stored: readonly StoredKey[], legacy: string | undefined): readonly ClientKey[] {
  return (isFromEnvironment(stored, legacy) ? [legacy!] : stored).map(clientKeyOf);
}

/** A key of the demo's past: it is shown, its hash is that of no key, and nobody has to send it. */
export const madeUpKey = (name: string) => ({ name, sha256: sha256(`made up for the demo: ${name}`).toHex() });

/** @param demo Only there may keys be made up. */
export const isMadeUp = (stored: StoredKey, demo: boolean): boolean =>
  demo && typeof stored !== "string" && stored.sha256 === madeUpKey(stored.name).sha256;

/** Whether the only key is that of the environment. */
export const isFromEnvironment = (stored: readonly unknown[], legacy: string | undefined): boolean =>
  stored.length === 0 && legacy !== undefined;

/** The keys of the config and the environment that callers send. They are read again only if the config has another list. */
export function currentClientKeys(
  config: Pick<ConfigStore, "current">,
  { clientKey }: Pick<Environment, "clientKey">,
  demo: boolean,
): () => readonly ClientKey[] {
  const read = (stored: Config["auth"]["apiKeys"]) => {
    const all = clientKeysOf(
      stored.filter((each) => !isMadeUp(each, demo)),
      clientKey,
    );
    for (const key of all)
      key.isRevoked = () => current() !== all && !current().some(({ digest }) => digest.equals(key.digest));
    return { stored, all };
  };
  let keys = read(config.current.auth.apiKeys);
  const current = () => {
    const { apiKeys } = config.current.auth;
    if (keys.stored !== apiKeys) keys = read(apiKeys);
    return keys.all;
  };
  return current;
}

function clientKeyOf(stored: StoredKey): ClientKey {
  const given: Partial<Exclude<StoredKey, string>> = typeof stored === "string" ? { key: stored } : stored;
  const { name = null, key, models = null, accounts, expiresAt, budgets = [] } = given;
  return {
    name,
    member: null,
    models,
    memberModels: null,
    accounts,
    digest: key === undefined ? Buffer.from(given.sha256!, "hex") : sha256(key),
    expiresAt: expiresAt === undefined ? null : Date.parse(expiresAt),
    limited: models !== null || budgets.length > 0,
  };
}

/** The key that one of the sent values is. Takes the same time whichever key matches, so that timing reveals nothing. */
export function findClientKey(sent: readonly string[], keys: readonly ClientKey[]): ClientKey | undefined {
  if (sent.length === 0) return undefined;
  const digests = sent.map(sha256);
  let found: ClientKey | undefined;
  for (const key of keys) for (const digest of digests) if (crypto.timingSafeEqual(digest, key.digest)) found ??= key;
  return found;
}

/** @param now Wall clock, ms. */
export const isExpired = ({ expiresAt }: ClientKey, now: number): boolean => expiresAt !== null && expiresAt <= now;

/** @throws ProxyError `authentication` if the key has expired. */
export function requireUnexpired({ name, member, expiresAt }: ClientKey, now: number): void {
  if (expiresAt === null || now < expiresAt) return;
  const hint =
    member === null
      ? "Ask the owner of this dragoman for a new one."
      : "Make a new one on the page Keys, with another key of yours, or ask the owner of this dragoman for an invitation link.";
  throw new ProxyError("authentication", `The client key \`${name}\` expired on ${utcDay(expiresAt)}. ${hint}`, {
    code: "expired_api_key",
    headers: { "www-authenticate": "Bearer" },
  });
}

/** Whether a text has the form of a key that `newClientKey` makes. */
export const isMadeKey = (text: string): boolean => /^drg_[\w-]{43}$/.test(text);

/** A new client key. Only its hash is stored. */
export const newClientKey = (): string => `drg_${crypto.getRandomValues(Buffer.alloc(32)).toString("base64url")}`;

export const keyExists = (name: string): ProxyError =>
  new ProxyError(
    "conflict",
    `There is a client key \`${name}\` already. Choose another name, or revoke that key first.`,
    { code: "key_exists", param: "name" },
  );

export const keyNotFound = (name: string): ProxyError =>
  new ProxyError("not_found", `There is no client key \`${name.slice(0, 127)}\`.`, { code: "key_not_found" });

/** @throws ProxyError `permission` for a tool's token, which may not make what is good for longer than itself. */
export function requireLasting(key: ClientKey | undefined): void {
  if (!key?.isShortLived) return;
  throw new ProxyError(
    "permission",
    "The token of a tool lasts an hour, and may make nothing that lasts longer. Use a key, or the pages: Keys makes one.",
    { code: "short_lived_token" },
  );
}

/** The error for a member whose key was revoked meanwhile. */
export const keyGone = (): ProxyError =>
  new ProxyError("authentication", "The key that you signed in with is gone. Sign in with another one.");

/** @param model A model's id, or `<provider>/<model>`. */
export function mayUse(key: ClientKey | undefined, model: string): boolean {
  return key === undefined || (matchesAny(key.models, model) && matchesAny(key.memberModels, model));
}

/** @param patterns Null for all models. */
export const matchesAny = (patterns: readonly string[] | null, model: string): boolean =>
  patterns === null || patterns.some((pattern) => matchesPattern(pattern, model));

/**
 * Whether the key may use a model that Auto chose: one that its patterns allow, or any model if they name Auto itself, so
 * that an owner can give a key that may use Auto, or one of its tiers, and nothing else.
 * @param asked `auto`, or the name of a tier.
 */
export const mayUseByAuto = (key: ClientKey | undefined, asked: string, model: string): boolean =>
  [key?.models, key?.memberModels].every(
    (patterns) =>
      !patterns ||
      matchesAny(patterns, model) ||
      patterns.some((each) => each.toLowerCase().startsWith("auto") && matchesPattern(each, asked)),
  );

/** @throws ProxyError `permission` if Auto chose a model that the key may not use. */
export function requireAutoChoice(key: ClientKey | undefined, asked: string, model: string): void {
  requireUnrevoked(key);
  if (mayUseByAuto(key, asked, model)) return;
  throw new ProxyError(
    "permission",
    `Auto chose \`${model}\` for this conversation, and the client key \`${key?.name}\` may not use it: name a model that it may use, which \`GET /v1/models\` lists, or ask the owner to allow \`${asked}\`.`,
    { param: "model", code: "model_not_allowed" },
  );
}

/** There are models that the key may not use. */
export const hasModelLimits = (key: ClientKey | undefined): key is ClientKey =>
  key !== undefined && (key.models !== null || key.memberModels !== null);

/** A body may be sent so slowly, or a request wait for so long, that the key is revoked meanwhile. @throws ProxyError `authentication` */
export function requireUnrevoked(key: ClientKey | undefined): void {
  if (!key?.isRevoked?.()) return;
  throw new ProxyError("authentication", `The client key \`${key.name}\` was revoked before its request was sent.`, {
    code: "invalid_api_key",
    headers: { "www-authenticate": "Bearer" },
  });
}

/** @throws ProxyError `permission` if the key may not use the model; `authentication` if it was revoked meanwhile. */
export function requireModel(key: ClientKey | undefined, model: string): void {
  if (key === undefined) return;
  requireUnrevoked(key);
  if (mayUse(key, model)) return;
  throw new ProxyError(
    "permission",
    `The client key \`${key.name}\` may not use \`${model}\`. \`GET /v1/models\` lists the models that it may use.`,
    { param: "model", code: "model_not_allowed" },
  );
}

/** Whether a text matches a pattern, in any case; `*` stands for any text. */
export function matchesPattern(pattern: string, text: string): boolean {
  const parts = pattern.toLowerCase().split("*");
  const id = text.toLowerCase();
  const [first, last] = [parts[0]!, parts.at(-1)!];
  if (parts.length === 1) return id === first;
  if (id.length < first.length + last.length || !id.startsWith(first) || !id.endsWith(last)) return false;
  let at = first.length;
  for (const part of parts.slice(1, -1)) {
    const found = id.indexOf(part, at);
    if (found < 0) return false;
    at = found + part.length;
  }
  return at <= id.length - last.length;
}
