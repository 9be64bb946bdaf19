/** What the schema says of a key beside its type: which count at a start only, and which are secrets, to be shown masked. */
import { z } from "zod";
import { ProxyError } from "../errors";
import { configSchema, spell } from "./schema";

interface Marked {
  secret?: boolean;
  /** Of a record: its values are secrets where their names say so. */
  secretByName?: boolean;
  restart?: boolean;
  properties?: Record<string, Marked>;
  additionalProperties?: Marked | boolean;
}

const root = z.toJSONSchema(configSchema, { io: "input" }) as Marked;

type Path = readonly string[];

/** Every key of the config by its path, and whether the file sets it from start to start only. */
export const configKeys: readonly { path: Path; restart: boolean }[] = pathsIn(root, []);

function pathsIn({ properties, restart = false }: Marked, path: Path): { path: Path; restart: boolean }[] {
  if (!properties) return [{ path, restart }];
  return Object.entries(properties).flatMap(([name, inner]) => pathsIn(inner, [...path, name]));
}

/** All secrets in a config, or in a part of it as the owner wrote it. */
export function secretsIn(config: unknown): string[] {
  const found: string[] = [];
  eachSecret(config, (secret) => {
    found.push(...[secret].flat().filter((each) => typeof each === "string"));
    return secret;
  });
  return found;
}

/** A copy to be shown: of a secret its last four characters, if it is long enough that they tell little. */
export function masked<T>(config: T): T {
  return eachSecret(config, (secret) => (Array.isArray(secret) ? secret.map(mask) : mask(secret))) as T;
}

/**
 * A copy with the secrets that its masks stand for.
 * @param known The config that was shown.
 * @throws ProxyError `invalid_request` for a mask that stands for nothing, or for more than one.
 */
export function unmasked<T>(config: T, known: unknown): T {
  return eachSecret(config, (secret, path) => {
    const behind = valueAt(known, path);
    if (!Array.isArray(secret)) return unmaskEach([secret], [behind], () => spell(path))[0];
    return unmaskEach(secret, Array.isArray(behind) ? behind : [], (index) => spell([...path, index]));
  }) as T;
}

/** Whether a text is one that `masked` makes: no secret holds this character, as it passes through no header. */
export const isMask = (value: unknown): boolean => typeof value === "string" && value.startsWith("…");

const mask = (secret: unknown): unknown => (typeof secret === "string" ? maskSecret(secret) : secret);

/** A secret's last four characters, if it is long enough that they tell little. */
export const maskSecret = (secret: string): string => `…${secret.length >= 16 ? secret.slice(-4) : ""}`;

/** Each mask's secret, in their order; where several look alike, all of them must be there. */
function unmaskEach(given: unknown[], known: unknown[], place: (index: number) => string): unknown[] {
  return given.map((value, index) => {
    if (!isMask(value)) return value;
    const alike = known.filter((secret) => mask(secret) === value);
    const same = given.flatMap((other, at) => (other === value ? at : []));
    if (alike.length === same.length) return alike[same.indexOf(index)];
    const why =
      alike.length === 0 ? "is masked and stands for no stored value" : "is masked as several stored values are";
    throw new ProxyError("invalid_request", `${place(index)}: ${why}; send the value itself.`, { param: place(index) });
  });
}

/** Whether a header of this name is there to carry a credential: `api-key`, `x-auth-token`, `cf-access-client-secret`. */
const namesSecret = (name: string): boolean =>
  /key|token|secret|auth|passw|pwd|credential|cookie|bearer|jwt/i.test(name);

/** A copy in which each marked value (a text or a list of them, if it is well-formed) is what `change` makes of it. */
function eachSecret(
  value: unknown,
  change: (secret: unknown, path: Path) => unknown,
  { secret, secretByName, properties = {}, additionalProperties }: Marked = root,
  path: Path = [],
): unknown {
  if (secret) return change(value, path);
  if (typeof value !== "object" || value === null || Array.isArray(value)) return value;
  const others = typeof additionalProperties === "object" ? additionalProperties : undefined;
  return Object.fromEntries(
    Object.entries(value).map(([name, inner]) => {
      const marked =
        secretByName && namesSecret(name)
          ? { secret: true }
          : Object.hasOwn(properties, name)
            ? properties[name]
            : others;
      return [name, marked ? eachSecret(inner, change, marked, [...path, name]) : inner];
    }),
  );
}

/** Undefined where there is nothing. */
export function valueAt(value: unknown, path: Path): unknown {
  return path.reduce<unknown>(
    (inner, name) =>
      typeof inner === "object" && inner !== null && Object.hasOwn(inner, name)
        ? (inner as Record<string, unknown>)[name]
        : undefined,
    value,
  );
}
