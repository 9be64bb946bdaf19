/**
 * Fields an upstream refuses. Clients grow new fields faster than upstreams learn them: one that is refused by name is
 * left out, the request is sent once more before any byte went to the client, and what was refused is remembered for a
 * while, so that the next request does not stumble again.
 */
import { isObject } from "../json";
import { editMembers } from "../net/json-edit";

export interface Refusals {
  /** Field patterns the model's endpoint refused in the last hour. */
  known(model: string): string[];
  learn(model: string, field: string): void;
  /** Everything remembered, for people: model, field and until when (ms timestamp). */
  all(): { model: string; field: string; until: number }[];
}

/** Milliseconds. */
const rememberFor = 3600_000;

export function openRefusals(now: () => number = Date.now): Refusals {
  const until = new Map<string, { model: string; field: string; until: number }>();
  const all = () => {
    for (const [key, refusal] of until) if (refusal.until <= now()) until.delete(key);
    return [...until.values()];
  };
  return {
    all,
    known: (model) => all().flatMap((refusal) => (refusal.model === model ? [refusal.field] : [])),
    learn(model, field) {
      until.set(`${model} ${field}`, { model, field, until: now() + rememberFor });
    },
  };
}

/**
 * The request without the given fields; the very same text when it has none of them.
 * @param fields Paths as the upstream spells them, `*` for any index: `tools.*.custom.eager_input_streaming`.
 */
export function withoutFields(text: string, fields: readonly string[]): string {
  if (fields.length === 0) return text;
  const body: unknown = JSON.parse(text);
  if (!isObject(body)) return text;
  const set: Record<string, unknown> = {};
  const remove: string[] = [];
  for (const field of fields) {
    const [member = "", ...path] = field.split(".");
    if (!Object.hasOwn(body, member)) continue;
    if (path.length === 0) remove.push(member);
    else if (removeAt(body[member], path)) set[member] = body[member];
  }
  const changed = Object.keys(set).length > 0 || remove.length > 0;
  return changed ? editMembers(text, set, remove) : text;
}

/** The field as it is remembered: whichever element was refused, all like it would be. */
export const anyIndex = (field: string) => field.replace(/(?<=\.)\d+(?=\.|$)/g, "*");

/** Removes in place; true when something was there. A segment that is no member is the name of a kind, as in `cache_control.ephemeral.scope`. */
function removeAt(value: unknown, path: readonly string[]): boolean {
  const [segment, ...rest] = path;
  if (segment === undefined) return false;
  if (Array.isArray(value)) {
    const items = segment === "*" ? value : [value[Number(segment)]];
    return items.map((item) => removeAt(item, rest)).some(Boolean);
  }
  if (!isObject(value)) return false;
  if (!Object.hasOwn(value, segment)) return removeAt(value, rest);
  if (rest.length > 0) return removeAt(value[segment], rest);
  delete value[segment];
  return true;
}
