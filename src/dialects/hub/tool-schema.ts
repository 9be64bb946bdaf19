/**
 * What vendors refuse in the schemas of tools, and by which fixups it is rewritten. A schema that an upstream refuses takes
 * the whole request with it, so that one tool ends a session.
 */
import { entryOf, isObject } from "../../lib/json";
import type { Conversation, Dialect, JsonObject } from "./conversation";
import { type Notes, unnoted } from "./notes";
import { mergeRootUnion } from "./root-union";
import {
  asNewestDraft,
  withItems,
  withItemTypes,
  withOneType,
  withoutBooleans,
  withoutDialect,
  withoutNull,
  withoutPatterns,
  withoutTuples,
  withRootType,
  withTextEnums,
} from "./schema-fixups";

/** Each returns the same object if nothing has to change. The order is that in which they are applied. */
const fixups = {
  "schema-draft": asNewestDraft,
  "schema-dialect": withoutDialect,
  "schema-union": mergeRootUnion,
  "schema-type": withRootType,
  "schema-boolean": withoutBooleans,
  "schema-pattern": withoutPatterns,
  "schema-tuple": withoutTuples,
  "schema-null": withoutNull,
  "schema-types": withOneType,
  "schema-enum": withTextEnums,
  "schema-item-types": withItemTypes,
  "schema-items": withItems,
} as const satisfies Record<string, (schema: JsonObject) => JsonObject>;

export type SchemaFixup = keyof typeof fixups;

/** All that is known to help. */
export const allFixups = Object.keys(fixups) as SchemaFixup[];

/** What a fixup takes away without saying it in words. */
const taken: Partial<Record<SchemaFixup, string>> = { "schema-union": "schema union" };

/** After these a schema may not meet the conditions of `strict` any more. */
const loosening: ReadonlySet<string> = new Set<SchemaFixup>([
  ...(["schema-union", "schema-tuple", "schema-items", "schema-item-types", "schema-boolean"] as const),
]);

interface VendorRow {
  fixups: readonly SchemaFixup[];
  /** Its refusal does not say what it refuses, so that also a request that passes through is rewritten before it is sent. */
  isSilent?: true;
  /** Names of properties at the root that it takes. */
  names?: RegExp;
  /** Names of tools that it takes, where those are fewer than all upstreams of the dialect take. */
  toolNames?: RegExp;
}

/**
 * OpenAI compiles patterns, wants a root of the type `object` without unions ("schema must have type 'object' and not have
 * 'oneOf'/'anyOf'/'allOf'/'enum'/'not' at the top level", nspady/google-calendar-mcp#39; "schema must be a JSON Schema of
 * 'type: "object"', got 'type: "None"'"), and lists with their items.
 */
const openai: VendorRow = {
  fixups: [
    ...(["schema-draft", "schema-boolean", "schema-pattern", "schema-tuple"] as const),
    ...(["schema-items", "schema-union", "schema-type"] as const),
  ],
};

/**
 * Anthropic checks schemas against the draft 2020-12, wants no union at the root ("input_schema does not support oneOf, allOf,
 * or anyOf at the top level", anthropics/claude-code#5319), and plain names: "Property keys should match pattern
 * '^[a-zA-Z0-9_.-]{1,64}$'" (twilio-labs/mcp#58, 2026-02). It looks at the names at the root alone: those of objects within
 * it, in lists or in `$defs` are taken (measured on Bedrock in
 * aws-solutions-library-samples/accelerated-intelligent-document-processing-on-aws#709, 2026-08; decocms/studio#6874, 2026-09).
 */
const anthropic: VendorRow = {
  fixups: ["schema-draft", "schema-union", "schema-type"],
  names: /^[a-zA-Z0-9_.-]{1,64}$/,
};

/**
 * Google's models on Copilot refuse lists of types, enums that are no texts and booleans in place of schemas with a bare "Bad
 * Request" (github/copilot-cli#4623, 2026-08 and 2026-09; hermes-agent#30676, 2026-05). Copilot's CLI rewrites them since
 * 1.0.103 (2026-10). "Invalid function name. Must start with a letter or an underscore" (microsoft/vscode#248000, on Copilot, 2025-05).
 */
const google: VendorRow = {
  isSilent: true,
  toolNames: /^[a-zA-Z_][a-zA-Z0-9_-]{0,63}$/,
  fixups: allFixups.filter((name) => name !== "schema-items"),
};

const vendorTable: Readonly<Record<Dialect, Readonly<Record<string, VendorRow>> & { others: VendorRow }>> = {
  chat: { Google: google, Anthropic: anthropic, others: openai },
  responses: { Anthropic: anthropic, others: openai },
  messages: { others: anthropic },
};

/** @param vendor As in the catalogue. */
export const vendorRow = (dialect: Dialect, vendor: string): VendorRow =>
  entryOf(vendorTable[dialect], vendor) ?? vendorTable[dialect].others;

/**
 * @param wanted The fixups to apply.
 * @returns The same schema if none changes anything; and whether it may not meet the conditions of `strict` any more.
 */
export function fitSchema(schema: JsonObject, wanted: readonly SchemaFixup[], notes = unnoted) {
  const fitted = { schema, isLooser: false };
  for (const name of wanted) {
    const after = fixups[name](fitted.schema);
    if (after === fitted.schema) continue;
    fitted.schema = after;
    fitted.isLooser ||= loosening.has(name);
    notes.addFixup(name);
    const lost = taken[name];
    if (lost !== undefined) notes.addDropped(lost);
  }
  return fitted;
}

/** Fixups of the schema of a reply; what else vendors want of it, they say of its root or enforce. */
const formatFixups: readonly SchemaFixup[] = ["schema-draft", "schema-pattern"];

/** The fixups of a vendor's row that the schema of a reply needs as well. */
export const formatRow = (dialect: Dialect, vendor: string): readonly SchemaFixup[] =>
  vendorRow(dialect, vendor).fixups.filter((name) => formatFixups.includes(name));

/** The conversation with a schema of its reply that is not refused: the same object if it has such a one. */
export function fitFormat(conversation: Conversation, target: Dialect, vendor: string, notes: Notes): Conversation {
  const { format } = conversation;
  if (!format || !isObject(format.schema)) return conversation;
  const { schema } = fitSchema(format.schema, formatRow(target, vendor), notes);
  return schema === format.schema ? conversation : { ...conversation, format: { ...format, schema } };
}
