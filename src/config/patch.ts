/** A change of the config: what the owner sends, put into what is stored. Nothing is written here. */

import { ProxyError } from "../errors";
import { isObject } from "../json";
import { configSchema, parseConfig, refuseInherited } from "./schema";
import { isMask, unmasked } from "./secrets";

/** What the owner set, as the file has it: no defaults, every key as it was spelled. */
export type Stored = Readonly<Record<string, unknown>>;

const keys: ReadonlySet<string> = new Set(Object.keys(configSchema.in.shape));

/** Two spellings of one key: what is said by one takes the place of what was said by the other. */
const twins: Readonly<Record<string, string>> = {
  anthropicApiKey: "vendorxApiKey",
  vendorxApiKey: "anthropicApiKey",
};

/**
 * What is to be stored after a change, checked as a whole.
 * @param patch Each top-level key with its new value; null forgets it. Masks stand for the secrets they were made of,
 * and a known provider may come without its key.
 * @throws ProxyError `invalid_request` naming what is wrong by its path.
 */
export function patched(stored: Stored, patch: Stored): Stored {
  refuseInherited(patch);
  const next: Record<string, unknown> = { ...stored };
  for (const [name, value] of Object.entries(unmasked(withKnownKeys(patch, stored), bothSpelled(stored)))) {
    const twin = twins[name];
    if (twin !== undefined && !Object.hasOwn(patch, twin)) delete next[twin];
    if (value === null && keys.has(name)) delete next[name];
    else next[name] = value;
  }
  const [before, after] = [parseConfig(stored), parseConfig(next)];
  // What holds already stays as the owner wrote it, or unwritten: a form sends back everything it was shown.
  for (const name of Object.keys(patch).filter((each) => isSame(each, before, after)))
    for (const spelling of [name, twins[name]]) if (spelling !== undefined) keep(next, stored, spelling);
  return next;
}

/** A key belongs to the address it was given for: elsewhere it must be sent again, or another server would learn it. */
function withKnownKeys(patch: Stored, stored: Stored): Stored {
  const [given, known] = [patch.providers, stored.providers];
  if (!isObject(given) || !isObject(known)) return patch;
  const providers = Object.entries(given).map(([name, provider]) => {
    const before = Object.hasOwn(known, name) ? known[name] : undefined;
    if (!isObject(provider) || !isObject(before)) return [name, provider];
    const own = Object.hasOwn(provider, "apiKey") ? provider.apiKey : undefined;
    if (own !== undefined && !isMask(own)) return [name, provider];
    if (originOf(provider.baseUrl) !== originOf(before.baseUrl)) throw movedAway(name);
    return [name, own === undefined ? { ...provider, apiKey: before.apiKey } : provider];
  });
  return { ...patch, providers: Object.fromEntries(providers) };
}

function movedAway(name: string): ProxyError {
  const param = `providers.${name}.apiKey`;
  return new ProxyError("invalid_request", `${param}: must be sent again, as baseUrl is at another origin now.`, {
    param,
  });
}

const originOf = (url: unknown) => (typeof url === "string" ? (URL.parse(url)?.origin ?? url) : undefined);

/** With each value under both spellings of its key. */
export function bothSpelled(stored: Stored): Stored {
  const known = { ...stored };
  for (const [one, other] of Object.entries(twins)) known[one] ??= stored[other];
  return known;
}

/** Under its one name in the parsed config. */
function isSame(name: string, before: object, after: object): boolean {
  const [one, other] = [before, after].map((config) =>
    Object.entries(config).find(([key]) => key === name || key === twins[name]),
  );
  return Bun.deepEquals(one?.[1], other?.[1]);
}

function keep(next: Record<string, unknown>, stored: Stored, name: string): void {
  if (Object.hasOwn(stored, name)) next[name] = stored[name];
  else delete next[name];
}
