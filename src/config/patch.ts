/** Applies a change to the stored config. Nothing is written here. */

import { ProxyError } from "../lib/errors";
import { isObject } from "../lib/json";
import { lazy } from "../lib/lazy";
import { refuseInherited } from "../lib/schema-errors";
import { presetOf } from "./provider-presets";
import { configSchema, parseConfig } from "./schema";
import { isMask, unmasked } from "./secrets";

/** The config as the file has it: without defaults, each key under the name that the owner used. */
export type Stored = Readonly<Record<string, unknown>>;

const keys = lazy((): ReadonlySet<string> => new Set(Object.keys(configSchema().in.shape)));

/** Two names of one key: a value under one replaces a value under the other. */
const aliases: Readonly<Record<string, string>> = {
  anthropicApiKey: "vendorxApiKey",
  vendorxApiKey: "anthropicApiKey",
};

/**
 * The config to store after a change, validated as a whole.
 * @param patch Each top-level key with its new value; null removes it. A mask stands for the secret it was made of, and a
 * stored provider may be sent without its key.
 * @throws ProxyError `invalid_request` naming what is wrong by its path.
 */
export function patched(stored: Stored, patch: Stored): Stored {
  refuseInherited(patch);
  const next: Record<string, unknown> = { ...stored };
  for (const [name, value] of Object.entries(unmasked(withStoredKeys(patch, stored), underBothNames(stored)))) {
    const alias = aliases[name];
    if (alias !== undefined && !Object.hasOwn(patch, alias)) delete next[alias];
    if (value === null && keys().has(name)) delete next[name];
    else next[name] = value;
  }
  const [before, after] = [parseConfig(stored), parseConfig(next)];
  // An unchanged value stays as the owner wrote it, or absent: a form sends back everything it was shown.
  for (const name of Object.keys(patch).filter((key) => isSame(key, before, after)))
    for (const spelling of [name, aliases[name]]) if (spelling !== undefined) keep(next, stored, spelling);
  return next;
}

/** An API key belongs to its address: for another origin it must be sent again, or another server would receive it. */
function withStoredKeys(patch: Stored, stored: Stored): Stored {
  const [sent, known] = [patch.providers, stored.providers];
  if (!isObject(sent) || !isObject(known)) return patch;
  const providers = Object.entries(sent).map(([name, provider]) => {
    const before = Object.hasOwn(known, name) ? known[name] : undefined;
    if (!isObject(provider) || !isObject(before)) return [name, provider];
    const own = Object.hasOwn(provider, "apiKey") ? provider.apiKey : undefined;
    if (own !== undefined && !isMask(own)) return [name, provider];
    if (before.apiKey === undefined) return [name, provider];
    if (originOf(name, provider) !== originOf(name, before)) throw movedAway(name);
    return [name, own === undefined ? { ...provider, apiKey: before.apiKey } : provider];
  });
  return { ...patch, providers: Object.fromEntries(providers) };
}

function movedAway(name: string): ProxyError {
  const param = `providers.${name}.apiKey`;
  return new ProxyError("invalid_request", `${param}: must be sent again, because baseUrl has another origin now.`, {
    param,
  });
}

function originOf(name: string, provider: Readonly<Record<string, unknown>>): string | undefined {
  const { baseUrl: url } = { ...presetOf(name, provider), ...provider };
  return typeof url === "string" ? (URL.parse(url)?.origin ?? url) : undefined;
}

/** The stored config with each value under both names of its key. */
export function underBothNames(stored: Stored): Stored {
  const all = { ...stored };
  for (const [one, other] of Object.entries(aliases)) all[one] ??= stored[other];
  return all;
}

/** Whether the parsed config has the same value before and after, under either name of the key. */
function isSame(name: string, before: object, after: object): boolean {
  const [one, other] = [before, after].map((config) =>
    Object.entries(config).find(([key]) => key === name || key === aliases[name]),
  );
  return Bun.deepEquals(one?.[1], other?.[1]);
}

function keep(next: Record<string, unknown>, stored: Stored, name: string): void {
  if (Object.hasOwn(stored, name)) next[name] = stored[name];
  else delete next[name];
}
