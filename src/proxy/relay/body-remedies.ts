/** What can be changed in a request's body after an upstream refused it, whichever upstream that was. */

import type { TranslationOptions } from "../../dialects/codec";
import type { JsonObject } from "../../dialects/hub/conversation";
import { omit, omitUndefined } from "../../dialects/hub/json";
import { type Notes, unnoted } from "../../dialects/hub/notes";
import { type MendedRequest, mendKnown, mendRefused, type SchemaTarget } from "../../dialects/hub/refused-schemas";
import { withNearestEffort, withoutTools } from "../../dialects/hub/value-remedies";
import { isObject, parseWithSource } from "../../lib/json";
import { type Body, bodyText, editBody, inOnePiece } from "../../lib/net/in/request-body";
import { editedTo, editMembers } from "../../lib/net/json/json-edit";
import type { SentBytes } from "../../lib/net/out/fetch";
import type { RequestScope } from "../scope";
import type { Failure } from "../upstream/copilot/failure";
import type { Lesson, Lessons, Taught } from "../upstream/copilot/lessons";
import { betaIn, withoutParams } from "../upstream/copilot/unsupported-params";
import type { Book } from "./book";
import type { Target } from "./target";
import type { BodyRules, Outgoing } from "./upstream-call";

/** A request that is being sent; the remedies change it. */
export interface SentRequest {
  readonly sent: Outgoing;
  readonly book: Book;
  /** The model's id, under which is remembered what it refused. */
  readonly model: string;
  /** The key of the account that is asked, or the provider's name. */
  readonly asked: string;
  /** What was changed of it; made when it is first asked for, as most requests are never refused. */
  readonly mending: Mending;
}

export interface Remedy<Sent> {
  when: Failure["remedy"];
  /** Changes what is sent next; false when nothing could be changed, so that the failure is final. */
  apply(current: Sent, failure: Failure): boolean | Promise<boolean>;
  /** How often it may be applied: once; once for each parameter, as upstreams name one at a time; as long as it changes something. */
  again: "never" | "for-another-param" | "while-it-changes";
}

type ValueKind = "effort" | "tools" | "choice" | "system";

/** A remedy for something that a model does not take, whoever asks: it is applied at once to the requests that follow. */
interface ValueRow<Kind extends ValueKind> {
  when: Failure["remedy"];
  kind: Kind;
  /** What a refusal says. */
  taught(failure: Failure): Taught[Kind];
  /** Which requests it holds for, where that is not all of the model's. */
  about?(body: JsonObject): string;
  /** The request as the model takes it; undefined where nothing can be changed, or need be. */
  mend(body: JsonObject, taught: Taught[Kind], codec: BodyRules["codec"]): JsonObject | undefined;
  fixup: string;
  dropped?: string;
}

function valueRemedy<Kind extends ValueKind>({ when, kind, taught, about, mend, fixup, dropped }: ValueRow<Kind>) {
  const note = (book: Book) => {
    book.addFixup(fixup);
    if (dropped !== undefined) book.addDropped(dropped);
  };
  const remedy: Remedy<SentRequest> = {
    when,
    apply: (current, failure) =>
      change(current, ({ codec }, json, text) => {
        const value = taught(failure);
        const mended = mend(json, value, codec);
        if (!mended) return undefined;
        note(current.book);
        current.mending.taught.push({ kind, scope: valuesOf(current), about: about?.(json), value } as Lesson);
        return editedTo(text, json, mended);
      }),
    again: "never",
  };
  /** The same body where nothing is known that would change it. */
  const mendKnown = (lessons: Lessons, current: SentRequest, body: JsonObject, codec: BodyRules["codec"]) => {
    const value = lessons.of(kind, valuesOf(current), about?.(body));
    const mended = value && mend(body, value, codec);
    if (mended) note(current.book);
    return mended ?? body;
  };
  return { remedy, mendKnown };
}

const valueRemedies = [
  valueRemedy({
    when: "fit-effort",
    kind: "effort",
    taught: ({ values }) => values?.efforts ?? [],
    mend: withNearestEffort,
    fixup: "effort",
  }),
  valueRemedy({
    when: "drop-tools",
    kind: "tools",
    taught: ({ values }) => values?.tools ?? [],
    mend: withoutTools,
    fixup: "server-tools",
    dropped: "tools",
  }),
  valueRemedy({
    when: "free-choice",
    kind: "choice",
    taught: () => true,
    // Some models take such a choice where they do not think.
    about: ({ thinking }) => (isObject(thinking) ? String(thinking.type) : ""),
    mend: (body, _, { remedies }) => withChanges(body, remedies.freeChoice?.(body)),
    fixup: "forced-choice",
  }),
  valueRemedy({
    when: "fold-system",
    kind: "system",
    taught: () => true,
    mend: (body, _, { remedies }) => withChanges(body, remedies.foldSystem?.(body)),
    fixup: "system-role",
  }),
];

const withChanges = (body: JsonObject, changes: JsonObject | undefined): JsonObject | undefined =>
  changes && omitUndefined({ ...body, ...changes });

/** Reasoning of another account or conversation, and ids of its items, are left out: all of them, as the next refusal would name the next one. */
const repair: Remedy<SentRequest> = {
  when: "repair",
  apply: (current) =>
    change(current, ({ codec }, json, text) => {
      const marks = new Set<string>();
      const repaired = codec.remedies.repair(json, (mark) => {
        marks.add(mark);
        return true;
      });
      if (repaired === json) return undefined;
      current.book.addFixup(foreignItems);
      const scope = itemsOf(current);
      for (const about of marks) current.mending.taught.push({ kind: "item", scope, about, value: true });
      return editedTo(text, json, repaired);
    }),
  again: "never",
};

const foreignItems = "foreign-items";

const valuesOf = ({ model }: Pick<SentRequest, "model">): string => `values of ${model}`;
const schemasOf = (model: string): string => `schemas of ${model}`;
const itemsOf = ({ model, asked }: Pick<SentRequest, "model" | "asked">): string => `items of ${model} with ${asked}`;

/** Changes what earlier refusals taught, before the request is sent; the book names it as it did then. Undefined if nothing is known. */
export function mendKnownRefusals(
  { lessons }: Pick<RequestScope, "lessons">,
  current: SentRequest,
): Promise<unknown> | undefined {
  if (lessons.isEmpty) return undefined;
  const knowsValues = lessons.knows(valuesOf(current));
  const knowsItems = lessons.knows(itemsOf(current));
  return knowsValues || knowsItems ? mendBy(lessons, current, { knowsValues, knowsItems }) : undefined;
}

function mendBy(lessons: Lessons, current: SentRequest, knows: { knowsValues: boolean; knowsItems: boolean }) {
  const items = itemsOf(current);
  return change(current, ({ codec }, json, text) => {
    let mended = json;
    if (knows.knowsValues)
      for (const { mendKnown } of valueRemedies) mended = mendKnown(lessons, current, mended, codec);
    if (knows.knowsItems) {
      const isForeign = (mark: string) => lessons.of("item", items, mark) ?? false;
      const repaired = codec.remedies.repair(mended, isForeign);
      if (repaired !== mended) current.book.addFixup(foreignItems);
      mended = repaired;
    }
    return mended === json ? undefined : editedTo(text, json, mended);
  });
}

export const bodyRemedies: readonly Remedy<SentRequest>[] = [
  repair,
  {
    when: "fit-tools",
    apply: (current, { schema = {} }) =>
      change(current, (rules, json, text) => {
        const { mending } = current;
        mending.schemaMends++;
        const made = mendRefused(
          json,
          schemaTarget(rules, current.book),
          schema,
          mending.schemaMends >= maxSchemaMends,
        );
        if (!made) return undefined;
        mending.taught.push(...schemaLessons(current.model, made.lessons));
        return withFields(text, made.set);
      }),
    again: "while-it-changes",
  },
  ...valueRemedies.map(({ remedy }) => remedy),
  {
    when: "drop-param",
    async apply(current, { param }) {
      if (param === undefined) return false;
      const beta = betaIn(param);
      if (beta !== undefined) return dropBeta(current, param, beta);
      const before = await plainBody(current.sent.body);
      const next = withoutPatterns(before, [param], current.book);
      current.mending.removed.push(param);
      if (next === before) return false;
      current.sent.body = inOnePiece(next);
      return true;
    },
    again: "for-another-param",
  },
];

/** @param edit Makes the text that is sent next; undefined where nothing can be changed. */
async function change(
  current: SentRequest,
  edit: (rules: BodyRules, json: JsonObject, text: string) => string | undefined,
): Promise<boolean> {
  const { rules } = current.sent;
  if (!rules) return false;
  const text = bodyText(await plainBody(current.sent.body));
  const json = parseWithSource(text);
  const next = isObject(json) ? edit(rules, json, text) : undefined;
  current.sent.body = next ?? current.sent.body;
  return next !== undefined;
}

/** Sends a beta no more, and none of the fields that need it; false where the request cannot be without one of them. */
const dropBeta = (current: SentRequest, param: string, beta: string): Promise<boolean> =>
  change(current, ({ codec, model, options, clientHeaders }, json, text) => {
    const { book } = current;
    const { mark } = book;
    const refused = [
      ...(options.refusedBetas ?? []),
      ...current.mending.removed.flatMap((each) => betaIn(each) ?? []),
      beta,
    ];
    const without = { ...options, refusedBetas: refused };
    const headersOf = (body: JsonObject, asked: TranslationOptions) =>
      clientHeaders === undefined ? undefined : codec.requestHeaders?.(clientHeaders, body, model, asked);
    const body = codec.fixRequest(json, model, without);
    const headers = headersOf(body, without);
    if (Object.values(headers ?? {}).some((value) => value.includes(beta))) {
      book.takeBack(mark);
      return undefined;
    }
    const before = new Set(Object.keys(headersOf(json, { ...options, notes: unnoted }) ?? {}));
    current.sent.headers = { ...omit(current.sent.headers ?? {}, before), ...headers } as Record<string, string>;
    current.mending.removed.push(param);
    book.addFixup(`refused:${param}`);
    return editedTo(text, json, body);
  });

/** How many remedies are tried for one request with one account or provider. */
const maxRemedies = 5;
/** How often schemas are mended, the last time all that may be refused. */
const maxSchemaMends = 3;

/** What was changed in a request to one account or provider. */
export class Mending {
  /** Patterns of the parameters that were removed. They are learned when the request then succeeds. */
  readonly removed: string[] = [];
  /** What else the refusals taught. It is learned then as well. */
  readonly taught: Lesson[] = [];
  /** How often schemas were mended. */
  schemaMends = 0;
  readonly #applied = new Set<string>();

  /** The remedy for a failure, which counts as applied; undefined where there is none, or where it was applied before. */
  remedyFor<Sent>(failure: Failure, all: readonly Remedy<Sent>[]): Remedy<Sent> | undefined {
    const applied = this.#applied;
    const remedy = all.find(({ when }) => when === failure.remedy);
    const causes = { never: "", "for-another-param": ` ${failure.param}`, "while-it-changes": ` ${applied.size}` };
    const cause = `${failure.remedy}${remedy ? causes[remedy.again] : ""}`;
    if (!remedy || applied.has(cause) || applied.size >= maxRemedies) return undefined;
    applied.add(cause);
    return remedy;
  }
}

/** The text with some members set; those that are undefined are removed. */
function withFields(text: string, fields: JsonObject): string {
  const removed = Object.keys(fields).filter((name) => fields[name] === undefined);
  return editMembers(text, omitUndefined(fields), removed);
}

const schemaLessons = (model: string, lessons: MendedRequest["lessons"]): Lesson[] =>
  lessons.map(([schema, value]) => ({ kind: "schema", scope: schemasOf(model), about: JSON.stringify(schema), value }));

const schemaTarget = ({ codec, dialect, model }: BodyRules, notes: Notes): SchemaTarget => ({
  dialect,
  notes,
  vendor: model.vendor,
  places: codec.schemas,
});

/** The body with the schemas that helped where the model had refused these; the book names what was changed. */
export const withMendedSchemas = (
  { lessons }: Pick<RequestScope, "lessons">,
  { model: { id } }: Pick<Target, "model">,
  rules: BodyRules,
  body: Body,
  book: Book,
): Body => {
  const isKnown = !lessons.isEmpty && lessons.knows(schemasOf(id));
  return isKnown ? withKnownSchemas(lessons, schemasOf(id), rules, body, book) : body;
};

const withKnownSchemas = (lessons: Lessons, scope: string, rules: BodyRules, body: Body, book: Book): Body =>
  editBody(body, (text, whole) => {
    const json = parseWithSource(text);
    if (!isObject(json)) return text;
    const mendOf = (schema: JsonObject) => lessons.of("schema", scope, JSON.stringify(whole(schema)));
    const made = mendKnown(json, schemaTarget(rules, book), mendOf, whole);
    if (!made) return text;
    return withFields(text, made.set);
  });

/** What helped is remembered. @param model The model's id. */
export function learnFrom(
  { unsupportedParams, lessons }: LearningScope,
  { removed, taught }: Mending,
  model: string,
): void {
  for (const pattern of removed) unsupportedParams.learn(model, pattern);
  for (const lesson of taught) lessons.learn(lesson);
}

type LearningScope = Pick<RequestScope, "unsupportedParams" | "lessons">;

const plainBody = (body: SentBytes): string | Uint8Array | Promise<Uint8Array> =>
  body instanceof Blob ? body.bytes() : body;

/** The body without the parameters that the model is known to refuse; the book names them. */
export const withoutRefused = (
  { unsupportedParams }: Pick<RequestScope, "unsupportedParams">,
  { model, provider }: Pick<Target, "model" | "provider">,
  body: Body,
  book: Book,
) => {
  const known = unsupportedParams.known(model.id);
  const own = provider?.settings.unsupportedParams;
  const patterns = own ? [...own, ...known] : known;
  return patterns.length === 0 ? body : withoutPatterns(body, patterns, book);
};

/** The very same body when it has none of these parameters. */
function withoutPatterns(body: Body, patterns: readonly string[], book: Book) {
  return editBody(body, (plain) => {
    const { text, removed } = withoutParams(plain, patterns);
    for (const pattern of removed) book.addFixup(`refused:${pattern}`);
    return text;
  });
}
