/** From a client's spelling of a model to one that exists; never silently to another model. */
import { ProxyError } from "../errors";

interface Named {
  id: string;
}

/**
 * The model a client means: the exact id, the id in other letters' case, the same name spelt with dashes, dots or a
 * date (`claude-sonnet-4-5-20250929` is `claude-sonnet-4.5`), or what the owner's aliases say.
 * @throws ProxyError `not_found` naming the three nearest ids; `invalid_request` for a bracketed suffix such as `[1m]`.
 */
export function findModel<M extends Named>(name: string, models: readonly M[], aliases: Record<string, string>): M {
  const found = lookUp(name, models) ?? (Object.hasOwn(aliases, name) ? lookUp(aliases[name]!, models) : undefined);
  if (found) return found;
  const shown = name.slice(0, 100);
  if (name.includes("[")) {
    const bare = name.replace(/\[.*$/s, "");
    const meant = lookUp(`${bare}-1m`, models) ?? lookUp(bare, models);
    throw new ProxyError(
      "invalid_request",
      `The model id \`${shown}\` carries a bracketed suffix, which asks for a context window beyond the upstream's limit. ${meant ? `Use \`${meant.id}\`.` : "Use the id without it."}`,
      { param: "model", code: "model_suffix_not_supported" },
    );
  }
  const near = nearest(name, models);
  throw new ProxyError(
    "not_found",
    `There is no model \`${shown}\` for your accounts.${near.length > 0 ? ` The nearest are ${near.map((id) => `\`${id}\``).join(", ")}.` : ""} GET /v1/models lists them all.`,
    { param: "model", code: "model_not_found" },
  );
}

function lookUp<M extends Named>(name: string, models: readonly M[]): M | undefined {
  const lower = name.toLowerCase();
  return (
    models.find(({ id }) => id === name) ??
    models.find(({ id }) => id.toLowerCase() === lower) ??
    models.find(({ id }) => canonical(id) === canonical(lower))
  );
}

/** Family and version in one order: dates and `-latest` off first, or `4-20250514` would read as version 4.20250514. */
function canonical(id: string): string {
  const undated = id.toLowerCase().replace(/-(?:\d{8}|latest)$/, "");
  const claude =
    /^claude-(?:(?<family>[a-z]+)-(?<version>\d+(?:[-.]\d{1,2})?)|(?<early>\d+(?:[-.]\d{1,2})?)-(?<late>[a-z]+))(?<rest>(?:-.*)?)$/.exec(
      undated,
    );
  if (!claude?.groups) return undated;
  const { family, version, early, late, rest } = claude.groups;
  return `claude-${family ?? late}-${(version ?? early)!.replace("-", ".")}${rest}`;
}

function nearest(name: string, models: readonly Named[]): string[] {
  const wanted = name.toLowerCase().slice(0, 100);
  return [...new Set(models.map(({ id }) => id))]
    .map((id) => ({ id, distance: editDistance(wanted, id.toLowerCase()) }))
    .sort((a, b) => a.distance - b.distance)
    .slice(0, 3)
    .map(({ id }) => id);
}

/** Levenshtein, one row at a time. */
function editDistance(a: string, b: string): number {
  let row = Array.from({ length: b.length + 1 }, (_, index) => index);
  for (let i = 1; i <= a.length; i++) {
    const next = [i];
    for (let j = 1; j <= b.length; j++)
      next.push(Math.min(row[j]! + 1, next[j - 1]! + 1, row[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1)));
    row = next;
  }
  return row[b.length]!;
}
