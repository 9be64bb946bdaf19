/** Resolves a client's name of a model to a listed model, and never to a different one. */
import { editDistance } from "../../../lib/edit-distance";
import { ProxyError, quoted, words } from "../../../lib/errors";
import { matchesPattern } from "../../../people/keys/client-keys";

interface Named {
  id: string;
}

/**
 * The model a client means: the exact id, the id in another case, the name with dashes instead of dots or with a date
 * (`claude-sonnet-4-5-20250929` is `claude-sonnet-4.5`), or an alias.
 * @param aliases The first table that has an alias for the name counts.
 * @throws ProxyError `not_found` naming the three nearest ids; `invalid_request` for a bracketed suffix such as `[1m]`.
 */
export function findModel<M extends Named>(name: string, models: readonly M[], ...aliases: readonly Aliases[]): M {
  const found = name.length > longestModelName ? undefined : lookUpOrAlias(name, models, aliases);
  if (found) return found;
  const shown = quoted(name);
  if (name.includes("[")) {
    const bare = name.slice(0, Math.min(name.indexOf("["), longestModelName));
    const meant = findListed(`${bare}-1m`, models) ?? findListed(bare, models);
    throw new ProxyError(
      "invalid_request",
      words`The model id \`${shown}\` carries a bracketed suffix, which asks for a context window beyond the upstream's limit. ${meant ? `Use \`${meant.id}\`.` : "Use the id without it."}`,
      { param: "model", code: "model_suffix_not_supported" },
    );
  }
  const near = nearest(name, models);
  throw new ProxyError(
    "not_found",
    words`There is no model \`${shown}\` for your accounts.${near.length > 0 ? ` The nearest are ${near.map((id) => `\`${id}\``).join(", ")}.` : ""} GET /v1/models lists them all.`,
    { param: "model", code: "model_not_found" },
  );
}

/** Characters. No id or alias is longer. */
export const longestModelName = 512;

/** Other names, or patterns of names, and the model that each stands for. `*` stands for any text. */
type Aliases = Readonly<Record<string, string>>;

/** What an alias of this name stands for: the name itself before patterns, and of those the most specific one. */
export function aliasOf(name: string, table: Aliases): string | undefined {
  if (Object.hasOwn(table, name)) return table[name];
  const pattern = patternsOf(table).find((each) => matchesPattern(each, name));
  return pattern === undefined ? undefined : table[pattern];
}

/** The patterns of each table, those with the most letters first. Made once: a table is never changed, but replaced. */
const patternsByTable = new WeakMap<Aliases, readonly string[]>();

function patternsOf(table: Aliases): readonly string[] {
  let patterns = patternsByTable.get(table);
  if (!patterns) {
    patterns = Object.keys(table)
      .filter((name) => name.includes("*"))
      .sort((one, other) => lettersIn(other) - lettersIn(one));
    patternsByTable.set(table, patterns);
  }
  return patterns;
}

const lettersIn = (pattern: string): number => pattern.replaceAll("*", "").length;

/** The model of a list that has this name, without regard to aliases. */
export function findListed<M extends Named>(name: string, models: readonly M[]): M | undefined {
  if (name.length > longestModelName) return undefined;
  const { byId, byLowerCase, byCanonical } = namesOf(models);
  const lower = name.toLowerCase();
  return byId.get(name) ?? byLowerCase.get(lower) ?? byCanonical.get(canonical(lower));
}

function lookUpOrAlias<M extends Named>(name: string, models: readonly M[], aliases: readonly Aliases[]) {
  const listed = findListed(name, models);
  if (listed) return listed;
  for (const table of aliases) {
    const alias = aliasOf(name, table);
    if (alias !== undefined) return findListed(alias, models);
  }
}

/** The models of one list by their names. Of equal names the first counts. */
interface Names<M> {
  byId: Map<string, M>;
  byLowerCase: Map<string, M>;
  byCanonical: Map<string, M>;
}

/** Made once for each list: a list is never changed, but replaced. */
const namesByList = new WeakMap<readonly Named[], Names<Named>>();

function namesOf<M extends Named>(models: readonly M[]): Names<M> {
  const known = namesByList.get(models) as Names<M> | undefined;
  if (known) return known;
  const names: Names<M> = { byId: new Map(), byLowerCase: new Map(), byCanonical: new Map() };
  // From the end, so that the first of equal names is written last.
  for (const model of models.toReversed()) {
    names.byId.set(model.id, model);
    names.byLowerCase.set(model.id.toLowerCase(), model);
    names.byCanonical.set(canonical(model.id), model);
  }
  namesByList.set(models, names);
  return names;
}

/** Family and version in a fixed order. Dates and `-latest` are removed first, or `4-20250514` would be version 4.20250514. */
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

/** The three ids nearest to an unknown name: those that lack the fewest of its words, and of these the most alike. */
export function nearest(name: string, models: readonly Named[]): string[] {
  const wanted = comparable(name);
  let best: { id: string; distance: number }[] = [];
  let compared = 0;
  for (const { id, lacked, least } of byLeastDistance(wanted, models)) {
    // No later id can be nearer. The search is bounded because anyone may send unknown names.
    if ((best.length === shownNames && best.at(-1)!.distance <= least) || compared === maxCompared) break;
    compared++;
    best.push({ id, distance: lacked + editDistance(wanted, comparable(id)) });
    best = best.sort((a, b) => a.distance - b.distance).slice(0, shownNames);
  }
  return best.map(({ id }) => id);
}

const shownNames = 3;
/** The distance is computed for this many ids; the others are judged by their letters. */
const maxCompared = 24;

const comparedLetters = 48;
/** The first characters of a name, without regard to case: the rest does not count. */
const comparable = (name: string): string => name.slice(0, comparedLetters).toLowerCase();

/**
 * Each id with a lower bound of its distance, from its letters without their order; the least first. A word of the name
 * that the id lacks is farther than any letters: `gpt-4o-mini` is nearer to `gpt-4o-mini-2024-07-18` than to `gpt-5-mini`.
 */
function* byLeastDistance(
  wanted: string,
  models: readonly Named[],
): Generator<{ id: string; lacked: number; least: number }> {
  const words = [...new Set(wanted.split(/[^a-z0-9]+/))];
  const letters = new Int8Array(128);
  for (let at = 0; at < wanted.length; at++) letters[wanted.charCodeAt(at) & 127]!++;
  const byDistance: { id: string; lacked: number }[][] = [];
  const { byId } = namesOf(models);
  for (const model of models) {
    const { id } = model;
    if (byId.get(id) !== model) continue;
    const name = comparable(id);
    let common = 0;
    for (let at = 0; at < name.length; at++) if (letters[name.charCodeAt(at) & 127]!-- > 0) common++;
    for (let at = 0; at < name.length; at++) letters[name.charCodeAt(at) & 127]!++;
    const lacked = comparedLetters * words.filter((word) => !name.includes(word)).length;
    const least = lacked + Math.max(wanted.length, name.length) - common;
    byDistance[least] ??= [];
    byDistance[least].push({ id, lacked });
  }
  for (const [least, ids] of byDistance.entries()) for (const each of ids ?? []) yield { ...each, least };
}
