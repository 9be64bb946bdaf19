/** The keys of the config schema, and which of them are secrets, to be shown masked. */
import { z } from "zod";
import { ProxyError } from "../lib/errors";
import { isObject } from "../lib/json";
import { lazy } from "../lib/lazy";
import { formatPath } from "../lib/schema-errors";
import { configSchema } from "./schema";

interface Annotated {
  secret?: boolean;
  /** Of a record: a value is a secret if its name suggests one. */
  secretByName?: boolean;
  properties?: Record<string, Annotated>;
  additionalProperties?: Annotated | boolean;
}

const root = lazy(() => z.toJSONSchema(configSchema(), { io: "input" }) as Annotated);

type Path = readonly string[];

/** Every key of the config by its path. */
export const configKeys = lazy((): readonly ConfigKey[] => pathsIn(root(), []));

interface ConfigKey {
  path: Path;
}

function pathsIn({ properties }: Annotated, path: Path): ConfigKey[] {
  if (!properties) return [{ path }];
  return Object.entries(properties).flatMap(([name, inner]) => pathsIn(inner, [...path, name]));
}

/** All secrets in a config, or in a part of it. */
export function secretsIn(config: object | undefined): string[] {
  // An empty one has none, and most starts have no other: the schema is not made for it.
  if (config === undefined || Object.keys(config).length === 0) return [];
  const found: string[] = [];
  mapSecrets(config, (secret) => {
    const values = [secret].flat().flatMap((each) => (isObject(each) ? keyMembers.map((name) => each[name]) : [each]));
    found.push(...values.filter((value) => typeof value === "string"));
    return secret;
  });
  return found;
}

/** The secret members of a client key that is an object. */
const keyMembers = ["key", "sha256"] as const;

/** A copy for display, with each secret masked by {@link maskSecret}. */
export function masked<T>(config: T): T {
  return mapSecrets(config, (secret) => (Array.isArray(secret) ? secret.map(mask) : mask(secret))) as T;
}

/**
 * A copy with the stored secret in place of each mask.
 * @param known The config that was shown masked.
 * @throws ProxyError `invalid_request` for a mask that matches no stored secret, or several.
 */
export function unmasked<T>(config: T, known: unknown): T {
  return mapSecrets(config, (secret, path) => {
    const stored = valueAt(known, path);
    if (!Array.isArray(secret)) return unmaskEach([secret], [stored], () => formatPath(path))[0];
    const list = Array.isArray(stored) ? stored : [];
    const place = (index: number) => formatPath([...path, index]);
    return unmaskEach(secret, list, place).map((each, index) => unmaskKey(each, list, `${place(index)}.`));
  }) as T;
}

/** A named client key with the stored secret of the same name, if it was sent with a mask or without a secret. */
function unmaskKey(given: unknown, known: unknown[], place: string): unknown {
  if (!isObject(given)) return given;
  const stored = known.find((other) => isObject(other) && other.name === given.name);
  const own = keyMembers.filter((name) => given[name] !== undefined);
  if (own.length === 0 && isObject(stored)) return { ...given, ...pick(stored, keyMembers) };
  const wrong = own.find((name) => isMask(given[name]) && !(isObject(stored) && mask(stored[name]) === given[name]));
  if (wrong !== undefined) throw unknownMask(place + wrong, "is a mask that matches no stored value");
  const replaced = own.filter((name) => isMask(given[name]));
  return { ...given, ...pick(stored as Record<string, unknown>, replaced) };
}

const pick = (from: Record<string, unknown>, names: readonly string[]) =>
  Object.fromEntries(names.flatMap((name) => (from?.[name] === undefined ? [] : [[name, from[name]]])));

const unknownMask = (place: string, why: string) =>
  new ProxyError("invalid_request", `${place}: ${why}; send the value itself.`, { param: place });

/** Whether a value was made by `masked`: no secret has this character, as it is not valid in a header. */
export const isMask = (value: unknown): boolean => typeof value === "string" && value.startsWith("…");

function mask(secret: unknown): unknown {
  if (typeof secret === "string") return maskSecret(secret);
  if (!isObject(secret)) return secret;
  const own = keyMembers.filter((name) => typeof secret[name] === "string");
  return { ...secret, ...Object.fromEntries(own.map((name) => [name, mask(secret[name])])) };
}

/** The last four characters of a secret that is long enough for them to reveal little. */
export const maskSecret = (secret: string): string => `…${secret.length >= 16 ? secret.slice(-4) : ""}`;

/** The secret of each mask, in order; if several secrets have the same mask, all of them must be present. */
function unmaskEach(given: unknown[], known: unknown[], place: (index: number) => string): unknown[] {
  return given.map((value, index) => {
    if (!isMask(value)) return value;
    const alike = known.filter((secret) => mask(secret) === value);
    const same = given.flatMap((other, at) => (other === value ? at : []));
    if (alike.length === same.length) return alike[same.indexOf(index)];
    const why =
      alike.length === 0 ? "is a mask that matches no stored value" : "is a mask that matches several stored values";
    throw unknownMask(place(index), why);
  });
}

/** Whether a header of this name carries a credential: `api-key`, `x-auth-token`, `cf-access-client-secret`. */
const namesSecret = (name: string): boolean =>
  /key|token|secret|auth|passw|pwd|credential|cookie|bearer|jwt/i.test(name);

/** A copy in which `change` replaces each secret value (a text, or a list of them if it is well-formed). */
function mapSecrets(
  value: unknown,
  change: (secret: unknown, path: Path) => unknown,
  { secret, secretByName, properties = {}, additionalProperties }: Annotated = root(),
  path: Path = [],
): unknown {
  if (secret) return change(value, path);
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  const others = typeof additionalProperties === "object" ? additionalProperties : undefined;
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) => {
      const annotated =
        secretByName && namesSecret(name)
          ? { secret: true }
          : Object.hasOwn(properties, name)
            ? properties[name]
            : others;
      return [name, annotated ? mapSecrets(inner, change, annotated, [...path, name]) : inner];
    }),
  );
}

/** The value at a path; undefined if there is none. */
export function valueAt(value: unknown, path: Path): unknown {
  return path.reduce<unknown>(
    (inner, name) =>
      typeof inner === "object" && inner !== null && Object.hasOwn(inner, name)
        ? (inner as Record<string, unknown>)[name]
        : undefined,
    value,
  );
}
