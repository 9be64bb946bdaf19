/** A request whose schemas were refused is sent again with others, at last with one that says nothing but in words. */
import { isEmpty, isObject } from "../../lib/json";
import type { Dialect, JsonObject } from "./conversation";
import { Noted, type Notes } from "./notes";
import { mapSchema } from "./schema-walk";
import { allFixups, fitSchema, formatRow, vendorRow } from "./tool-schema";

/** What a refusal says of the schema that it is about; nothing where it does not say which. */
export interface SchemaRefusal {
  /** Where the tool stands in the request: `tools[2]`, `input[0].tools[1]`. */
  place?: string;
  /** The tool's name. */
  name?: string;
  /** A place in the schema: `properties`, `to`, `pattern`. */
  path?: readonly string[];
  /** It is about the schema of the reply. */
  isFormat?: true;
  /** It may be about anything else as well. */
  isBare?: true;
}

/** A function that a request offers, as its dialect writes it. */
export interface OfferedFunction {
  place: string;
  name: unknown;
  description?: unknown;
  schema: unknown;
  strict?: unknown;
}

/** The members of a function, other than its schema, that have to be set where it is sent as another one. */
export const describedAs = (offered: OfferedFunction, next: OfferedFunction): JsonObject => ({
  ...(next.description === undefined ? {} : { description: next.description }),
  ...(next.strict === offered.strict ? {} : { strict: next.strict }),
});

/** Where a dialect's requests have schemas. Both return the fields to set; undefined if nothing changed. */
export interface SchemaPlaces {
  mapFunctions(body: JsonObject, change: (offered: OfferedFunction) => OfferedFunction): JsonObject | undefined;
  /** @param change Returns undefined for a schema that is to be said in words. */
  mapFormat(body: JsonObject, change: (schema: JsonObject) => JsonObject | undefined): JsonObject | undefined;
}

/**
 * What is done with a schema: `usual` are the fixups of the vendor's row, `known` all that are known; `words` leaves an open
 * object, and the schema stands in the description.
 */
export type SchemaMend = "usual" | "known" | "words";

/** Whose request it is, how it has schemas, and who is told of changes. */
export interface SchemaTarget {
  dialect: Dialect;
  notes: Notes;
  /** As in the catalogue. */
  vendor: string;
  places: SchemaPlaces;
}

export interface MendedRequest {
  /** Top-level fields to set. */
  set: JsonObject;
  /** Each schema that was mended, and how. */
  lessons: [schema: JsonObject, mend: SchemaMend][];
}

/**
 * Mends what a refusal is about by all known means, and if they change nothing by words; the other schemas as is usual with
 * this vendor. A refusal that does not say which schema it is about is about all that may be refused.
 * @param isLast Nothing else will be tried: each schema that may be refused is said in words.
 * @returns Undefined if nothing can be changed.
 */
export function mendRefused(
  body: JsonObject,
  target: SchemaTarget,
  refusal: SchemaRefusal,
  isLast: boolean,
): MendedRequest | undefined {
  if (refusal.isBare && target.vendor !== "Google") return undefined;
  const about = namedIn(body, target.places, refusal);
  if (!about) return undefined;
  const { isAbout, isFormat } = about;
  const plan: Plan = {
    function: (offered) => (isAbout(offered) ? "known" : "usual"),
    format: () => (isFormat ? "known" : "usual"),
  };
  const notes = new Noted();
  const tried = isLast ? undefined : mended(body, { ...target, notes }, plan);
  if (tried?.lessons.some(([, mend]) => mend === "known")) {
    notes.passTo(target.notes);
    return tried;
  }
  const isCertain = refusal.place !== undefined || refusal.name !== undefined || refusal.isFormat;
  return mended(body, target, {
    function: (offered) =>
      (isAbout(offered) && isCertain) || ((isAbout(offered) || isLast) && !isPlain(offered.schema))
        ? "words"
        : undefined,
    format: (schema) => ((isFormat && isCertain) || ((isFormat || isLast) && !isPlain(schema)) ? "words" : undefined),
  });
}

/**
 * Mends the schemas of which it is known how.
 * @param mendOf What helped a schema before. @param whole Reads a value whose long texts are marks.
 */
export function mendKnown(
  body: JsonObject,
  target: SchemaTarget,
  mendOf: (schema: JsonObject) => SchemaMend | undefined,
  whole: (value: unknown) => unknown,
): MendedRequest | undefined {
  return mended(
    body,
    target,
    { function: ({ schema }) => knownOf(schema), format: knownOf },
    { most: mostMends, whole },
  );
  function knownOf(schema: unknown): SchemaMend | undefined {
    return isObject(schema) ? mendOf(schema) : undefined;
  }
}

/** Which schemas a refusal is about; undefined if it names one that is not there. */
function namedIn(body: JsonObject, places: SchemaPlaces, { place, name, path, isFormat }: SchemaRefusal) {
  if (isFormat) return { isAbout: () => false, isFormat };
  const isNamed = (offered: OfferedFunction) => (place === undefined ? offered.name === name : offered.place === place);
  const isOnPath = ({ schema }: Pick<OfferedFunction, "schema">) => path !== undefined && hasPath(schema, path);
  const isAbout = place !== undefined || name !== undefined ? isNamed : isOnPath;
  let isFound = false;
  places.mapFunctions(body, (offered) => {
    isFound ||= isAbout(offered);
    return offered;
  });
  if (isFound) return { isAbout, isFormat: false };
  return isAbout === isNamed ? undefined : { isAbout: () => true, isFormat: true };
}

function hasPath(schema: unknown, path: readonly string[]): boolean {
  let at = schema;
  for (const step of path) {
    if (Array.isArray(at)) at = at[Number(step)];
    else if (isObject(at) && Object.hasOwn(at, step)) at = at[step];
    else return false;
  }
  return at !== undefined;
}

/** What is to be done with each schema; undefined leaves it as it is. */
interface Plan {
  function(offered: OfferedFunction): SchemaMend | undefined;
  format(schema: JsonObject): SchemaMend | undefined;
}

/** @param most How often a schema is mended at most. */
function mended(
  body: JsonObject,
  target: SchemaTarget,
  plan: Plan,
  { most, whole }: { most: number; whole(value: unknown): unknown } = { most: 1, whole: (value) => value },
): MendedRequest | undefined {
  const { dialect, notes, places, vendor } = target;
  const lessons: MendedRequest["lessons"] = [];
  const ofFunctions = places.mapFunctions(body, (sent) => {
    let after = sent;
    for (let times = 0; times < most; times++) {
      const mend = plan.function(after);
      const schema = mend && whole(after.schema);
      const next = mend && isObject(schema) && mendOne({ ...after, schema }, mend, target);
      if (!next) break;
      lessons.push([schema, mend]);
      after = next;
    }
    return after;
  });
  const ofFormat = places.mapFormat(body, (sent) => {
    let after = sent;
    for (let times = 0; times < most; times++) {
      const mend = plan.format(after);
      if (!mend) break;
      const schema = whole(after) as JsonObject;
      const next = mend === "words" ? undefined : fitSchema(schema, formatRow(dialect, vendor), notes).schema;
      if (next === schema) break;
      lessons.push([schema, mend]);
      if (!next) {
        notes.addFixup(wordsFixup);
        return undefined;
      }
      after = next;
    }
    return after;
  });
  const set = { ...ofFunctions, ...ofFormat };
  return isEmpty(set) ? undefined : { set, lessons };
}

/** How often a schema is mended: as usual, by all known means, and in words. */
const mostMends = 3;
const wordsFixup = "schema-words";

/** @returns Undefined if nothing changes. */
function mendOne(
  offered: OfferedFunction & { schema: JsonObject },
  mend: SchemaMend,
  { dialect, notes, vendor }: SchemaTarget,
): OfferedFunction | undefined {
  const { schema } = offered;
  const isStrict = offered.strict === true;
  if (mend === "words") {
    if (isOpen(schema)) return undefined;
    const sentence = `Its input is a JSON object that matches this JSON Schema: ${JSON.stringify(schema)}`;
    const { description } = offered;
    const words = typeof description === "string" && description !== "" ? [description, sentence] : [sentence];
    notes.addFixup(wordsFixup);
    if (isStrict) notes.addDropped("strict");
    const open = { ...offered, description: words.join("\n\n"), schema: { type: "object", properties: {} } };
    return isStrict ? { ...open, strict: false } : open;
  }
  const fitted = fitSchema(schema, mend === "known" ? allFixups : vendorRow(dialect, vendor).fixups, notes);
  // The conditions of `strict` may be what was refused.
  const isLoosened = isStrict && (mend === "known" || fitted.isLooser);
  if (fitted.schema === schema && !isLoosened) return undefined;
  if (isLoosened) notes.addDropped("strict");
  return { ...offered, schema: fitted.schema, ...(isLoosened && { strict: false }) };
}

const isOpen = ({ type, properties = {}, ...others }: JsonObject): boolean =>
  type === "object" && isEmpty(others) && isObject(properties) && isEmpty(properties);

const plainKeywords = new Set([
  ...["type", "description", "title", "properties", "required", "items", "enum", "additionalProperties"],
]);

/** Whether a schema has only what every vendor takes, so that it is not what was refused. */
function isPlain(schema: unknown): boolean {
  let isSo = true;
  if (isObject(schema))
    mapSchema(schema, (inner) => {
      isSo &&= isPlainNode(inner);
      return inner;
    });
  return isSo;
}

function isPlainNode(schema: JsonObject): boolean {
  if (!Object.keys(schema).every((key) => plainKeywords.has(key))) return false;
  const { type, properties = {}, items, enum: values = [], additionalProperties: others } = schema;
  if (typeof type !== "string" || (items === undefined ? type === "array" : !isObject(items))) return false;
  if (!Array.isArray(values) || !values.every((value) => typeof value === "string")) return false;
  if (others !== undefined && typeof others !== "boolean") return false;
  return (
    isObject(properties) && Object.entries(properties).every(([name, each]) => plainName.test(name) && isObject(each))
  );
}

const plainName = /^\w{1,64}$/;
