/**
 * What a JSON object is known to look like, and how another one differs. Only names count, and the values of members whose
 * values are names themselves, such as `type`. Nothing else of the JSON is ever looked at or returned.
 */
import { isObject } from "./json";

export interface Shape {
  readonly members: ReadonlyMap<string, Member>;
}

interface Member {
  /** Undefined where what is inside is not looked at: texts, numbers, and objects whose names somebody chose. */
  readonly shape?: Shape;
  readonly isRequired: boolean;
  /** The values of a member whose values are names. */
  readonly values?: ReadonlySet<string>;
}

export interface Difference {
  /** `new`: a member that is not known. `value`: a name that is not known. `missing`: a member that is always there. */
  kind: "new" | "value" | "missing";
  /** Such as `usage.details.cached`, or `content.type=poem`. */
  path: string;
}

/**
 * Reads a shape: names apart by spaces. `name!` is always there; `name{…}` is an object or a list of objects;
 * `name=a|b` has names as values. In this order: `name!=a|b`, `name!{…}`.
 * @throws Error if the braces do not match.
 */
export function shape(text: string): Shape {
  const tokens = text.match(/[{}]|[^\s{}]+/g) ?? [];
  let at = 0;
  const read = (isInner: boolean): Shape => {
    const members = new Map<string, Member>();
    while (at < tokens.length && tokens[at] !== "}") {
      const [, name, mark, values] = /^([^!=]+)(!?)(?:=(.+))?$/.exec(tokens[at++]!) ?? [];
      if (name === undefined) throw new Error(`A shape cannot be read: ${text}`);
      let inner: Shape | undefined;
      if (tokens[at] === "{") {
        at++;
        inner = read(true);
      }
      members.set(name, {
        shape: inner,
        isRequired: mark === "!",
        values: values ? new Set(values.split("|")) : undefined,
      });
    }
    if (isInner !== (tokens[at++] === "}")) throw new Error(`The braces of a shape do not match: ${text}`);
    return { members };
  };
  return read(false);
}

/** Of a list, at most this many items are compared. */
const maxItems = 50;

/** How the object differs from its shape. */
export function differencesIn(json: object, { members }: Shape, path = ""): Difference[] {
  const found: Difference[] = [];
  for (const [name, { isRequired }] of members)
    if (isRequired && !Object.hasOwn(json, name)) found.push({ kind: "missing", path: path + plainName(name) });
  for (const [name, value] of Object.entries(json)) {
    const member = members.get(name);
    const own = path + plainName(name);
    if (!member) found.push({ kind: "new", path: own });
    else if (typeof value === "string" && member.values && !member.values.has(value))
      found.push({ kind: "value", path: `${own}=${plainName(value)}` });
    else if (member.shape)
      for (const item of Array.isArray(value) ? value.slice(0, maxItems) : [value])
        if (isObject(item)) found.push(...differencesIn(item, member.shape, `${own}.`));
  }
  return found;
}

/** Whether it is a name of a wire format; anything else could be somebody's text. */
export const isPlainName = (name: string): boolean => /^[A-Za-z_][\w.:-]{0,63}$/.test(name);

export const plainName = (name: string): string => (isPlainName(name) ? name : "(no plain name)");
