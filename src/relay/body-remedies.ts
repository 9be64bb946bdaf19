/** What can be changed in a request's body after an upstream refused it, whichever upstream that was. */

import type { Scope } from "../app";
import type { JsonObject } from "../dialects/hub/conversation";
import { omit, omitUndefined } from "../dialects/hub/json";
import { type MendedRequest, mendKnown, mendRefused, type SchemaTarget } from "../dialects/hub/refused-schemas";
import { withNearestEffort, withoutTools } from "../dialects/hub/value-remedies";
import { isObject, parseWithSource } from "../json";
import { type Body, bodyText, editBody, inOnePiece } from "../net/in/request-body";
import { editedTo, editMembers } from "../net/json/json-edit";
import type { SentBytes } from "../net/out/fetch";
import type { Failure } from "../upstream/copilot/failure";
import { betaIn, withoutParams } from "../upstream/copilot/unsupported-params";
import type { RequestRecord } from "./request-record";
import type { Target } from "./target";
import type { BodyRules, Outgoing } from "./upstream-call";

/** A request that is being sent; the remedies change it. */
export interface SentRequest {
  readonly sent: Outgoing;
  readonly record: RequestRecord;
  /** Patterns of the parameters that were removed. They are learned when the request then succeeds. */
  readonly removed: string[];
  /** Schemas that were mended. They are learned as well. */
  readonly mended: MendedRequest["lessons"];
  /** How often schemas were mended. */
  schemaMends: number;
}

export interface Remedy<Sent> {
  when: Failure["remedy"];
  /** Changes what is sent next; false when nothing could be changed, so that the failure is final. */
  apply(current: Sent, failure: Failure): boolean | Promise<boolean>;
  /** How often it may be applied: once; once for each parameter, as upstreams name one at a time; as long as it changes something. */
  again: "never" | "for-another-param" | "while-it-changes";
}

export const bodyRemedies: readonly Remedy<SentRequest>[] = [
  {
    when: "repair",
    apply: (current) =>
      change(current, ({ codec }, json, text) => {
        current.record.addFixup("foreign-items");
        return editedTo(text, json, codec.repairRequest(json));
      }),
    again: "never",
  },
  {
    when: "fit-tools",
    apply: (current, { schema = {} }) =>
      change(current, (rules, json, text) => {
        current.schemaMends++;
        const made = mendRefused(json, schemaTarget(rules), schema, current.schemaMends >= maxSchemaMends);
        if (!made) return undefined;
        current.record.addChanges(made);
        current.mended.push(...made.lessons);
        return withFields(text, made.set);
      }),
    again: "while-it-changes",
  },
  {
    when: "fit-effort",
    apply: (current, { values }) =>
      change(current, (_, json, text) => {
        const fitted = withNearestEffort(json, values?.efforts ?? []);
        if (fitted) current.record.addFixup("effort");
        return fitted && editedTo(text, json, fitted);
      }),
    again: "never",
  },
  {
    when: "drop-tools",
    apply: (current, { values }) =>
      change(current, (_, json, text) => {
        const fitted = withoutTools(json, values?.tools ?? []);
        if (fitted) current.record.addChanges({ fixups: ["server-tools"], dropped: ["tools"] });
        return fitted && editedTo(text, json, fitted);
      }),
    again: "never",
  },
  {
    when: "free-choice",
    apply: (current) =>
      change(current, ({ codec }, json, text) => {
        const freed = codec.freeChoice?.(json);
        if (freed) current.record.addFixup("forced-choice");
        return freed && editMembers(text, freed, []);
      }),
    again: "never",
  },
  {
    when: "fold-system",
    apply: (current) =>
      change(current, ({ codec }, json, text) => {
        const folded = codec.foldSystem?.(json);
        if (folded) current.record.addFixup("system-role");
        return folded && editedTo(text, json, omitUndefined({ ...json, ...folded }));
      }),
    again: "never",
  },
  {
    when: "drop-param",
    async apply(current, { param }) {
      if (param === undefined) return false;
      const beta = betaIn(param);
      if (beta !== undefined) return dropBeta(current, param, beta);
      const before = await plainBody(current.sent.body);
      const next = withoutPatterns(before, [param], current.record);
      current.removed.push(param);
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
    const refused = [...(options.refusedBetas ?? []), ...current.removed.flatMap((each) => betaIn(each) ?? []), beta];
    const headersOf = (body: JsonObject, refusedBetas = options.refusedBetas) =>
      clientHeaders === undefined
        ? undefined
        : codec.requestHeaders?.(clientHeaders, body, model, { ...options, refusedBetas });
    const { body, ...changes } = codec.fixRequest(json, model, { ...options, refusedBetas: refused });
    const headers = headersOf(body, refused);
    if (Object.values(headers?.headers ?? {}).some((value) => value.includes(beta))) return undefined;
    const before = new Set(Object.keys(headersOf(json)?.headers ?? {}));
    current.sent.headers = { ...omit(current.sent.headers ?? {}, before), ...headers?.headers } as Record<
      string,
      string
    >;
    current.removed.push(param);
    for (const made of [changes, headers ?? {}]) current.record.addChanges(made);
    current.record.addFixup(`refused:${param}`);
    return editedTo(text, json, body);
  });

/** How many remedies are tried for one request with one account or provider. */
const maxRemedies = 5;
/** How often schemas are mended, the last time all that may be refused. */
const maxSchemaMends = 3;

/**
 * Finds the remedies of one try.
 * @returns The remedy for a failure; undefined where there is none, or where it was applied before.
 */
export function remediesOf<Sent>(all: readonly Remedy<Sent>[]): (failure: Failure) => Remedy<Sent> | undefined {
  const applied = new Set<string>();
  return (failure) => {
    const remedy = all.find(({ when }) => when === failure.remedy);
    const causes = { never: "", "for-another-param": ` ${failure.param}`, "while-it-changes": ` ${applied.size}` };
    const cause = `${failure.remedy}${remedy ? causes[remedy.again] : ""}`;
    if (!remedy || applied.has(cause) || applied.size >= maxRemedies) return undefined;
    applied.add(cause);
    return remedy;
  };
}

/** The text with some members set; those that are undefined are removed. */
function withFields(text: string, fields: JsonObject): string {
  const removed = Object.keys(fields).filter((name) => fields[name] === undefined);
  return editMembers(text, omitUndefined(fields), removed);
}

const schemaTarget = ({ codec, dialect, model }: BodyRules): SchemaTarget => ({
  dialect,
  vendor: model.vendor,
  places: codec.schemas,
});

/** The body with the schemas that helped where the model had refused these; the record names what was changed. */
export const withMendedSchemas = (
  { refusedSchemas }: Pick<Scope, "refusedSchemas">,
  rules: BodyRules,
  body: Body,
  record: RequestRecord,
): Body => {
  const { id } = rules.model;
  if (!refusedSchemas.knows(id)) return body;
  return editBody(body, (text, whole) => {
    const json = parseWithSource(text);
    if (!isObject(json)) return text;
    const mendOf = (schema: JsonObject) => refusedSchemas.mendOf(id, whole(schema) as JsonObject);
    const made = mendKnown(json, schemaTarget(rules), mendOf, whole);
    if (!made) return text;
    record.addChanges(made);
    return withFields(text, made.set);
  });
};

/** What helped is remembered. */
export function learnFrom(
  { unsupportedParams, refusedSchemas }: LearningScope,
  model: string,
  sent: SentRequest,
): void {
  for (const pattern of sent.removed) unsupportedParams.learn(model, pattern);
  for (const [schema, mend] of sent.mended) refusedSchemas.learn(model, schema, mend);
}

type LearningScope = Pick<Scope, "unsupportedParams" | "refusedSchemas">;

const plainBody = (body: SentBytes): string | Uint8Array | Promise<Uint8Array> =>
  body instanceof Blob ? body.bytes() : body;

/** The body without the parameters that the model is known to refuse; the record names them. */
export const withoutRefused = (
  { unsupportedParams }: Pick<Scope, "unsupportedParams">,
  { model, provider }: Pick<Target, "model" | "provider">,
  body: Body,
  record: RequestRecord,
) => {
  const known = unsupportedParams.known(model.id);
  const own = provider?.settings.unsupportedParams;
  const patterns = own ? [...own, ...known] : known;
  return patterns.length === 0 ? body : withoutPatterns(body, patterns, record);
};

/** The very same body when it has none of these parameters. */
function withoutPatterns(body: Body, patterns: readonly string[], record: RequestRecord) {
  return editBody(body, (plain) => {
    const { text, removed } = withoutParams(plain, patterns);
    for (const pattern of removed) record.addFixup(`refused:${pattern}`);
    return text;
  });
}
