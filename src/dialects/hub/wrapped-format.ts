/**
 * OpenAI's models answer with an object only ("schema must be a JSON Schema of 'type: "object"', got 'type: "array"'").
 * If a client wants a list or a choice, its schema becomes the only member of an object, which is taken out of the reply
 * again.
 */

import { isObject, parseJson } from "../../lib/json";
import type { Stage } from "../../lib/net/stream/stream";
import type { Conversation, Dialect, JsonObject, ResponseFormat } from "./conversation";
import { omit, setField } from "./json";
import type { ReplyEvent } from "./reply";
import { isStrict } from "./strict-schema";
import { changeTexts, type TextChange } from "./text-changes";
import { upstreamFacts } from "./upstream-facts";

const member = "answer";
/** References point to these at the root. */
const definitions = new Set(["$defs", "definitions"]);

interface WrappedFormat {
  format: ResponseFormat;
  /** Takes the member out of the reply's text. */
  restore: Stage<ReplyEvent, ReplyEvent>;
}

/** Undefined if the upstream takes the format as it is. */
export function wrapFormat({ format }: Conversation, target: Dialect): WrappedFormat | undefined {
  if (!format || !isObject(format.schema) || Object.keys(format.schema).length === 0) return undefined;
  const { schema, isPlain, ...others } = format;
  if (!isPlain && (schema.type === "object" || upstreamFacts[target].takesAnySchema)) return undefined;
  const root: JsonObject = {};
  for (const key of definitions) if (key in schema) root[key] = moved(schema[key]);
  const wrapped = {
    type: "object",
    properties: { [member]: moved(omit(schema, definitions) ?? {}) },
    required: [member],
    additionalProperties: false,
    ...root,
  };
  const strict = others.strict ?? (isStrict(wrapped) || undefined);
  return {
    format: { ...others, schema: wrapped, ...(strict === undefined ? {} : { strict }) },
    restore: isPlain ? plainText : unwrapped,
  };
}

/** The schema with references to its root where the root is now. */
function moved(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(moved);
  if (!isObject(schema)) return schema;
  const copy: JsonObject = {};
  for (const [key, value] of Object.entries(schema))
    setField(copy, key, key === "$ref" && value === "#" ? `#/properties/${member}` : moved(value));
  return copy;
}

// ── Replies ──

/** @param make Gives what changes one of the reply's texts. */
const onTexts = (make: () => TextChange): Stage<ReplyEvent, ReplyEvent> =>
  changeTexts((block) => (block.kind === "text" && !block.refusal ? make() : undefined));

const opening = new RegExp(`^\\s*\\{\\s*"${member}"\\s*:\\s*`);
/** Longer than an opening with its white space. */
const longestOpening = 200;

/** The member's value as the model writes it. A text that does not begin as it should is passed on. */
const unwrapped = onTexts(() => {
  let held = "";
  let depth = 0;
  let isQuoted = false;
  let isEscaped = false;
  let state: "before" | "inside" | "after" | "other" = "before";
  let space = "";
  const inside = (text: string): string => {
    let taken = "";
    for (const sign of text) {
      if (state === "after") break;
      if (isQuoted) {
        if (isEscaped) isEscaped = false;
        else if (sign === "\\") isEscaped = true;
        else if (sign === '"') isQuoted = false;
      } else if (sign === '"') isQuoted = true;
      else if (sign === "{" || sign === "[") depth++;
      else if (sign === "," && depth === 0) state = "after";
      else if (sign === "]" || sign === "}") {
        if (depth === 0) state = "after";
        else depth--;
      }
      if (state === "after") break;
      // White space after the value belongs to the object around it.
      if (!isQuoted && depth === 0 && /\s/.test(sign)) space += sign;
      else {
        taken += space + sign;
        space = "";
      }
    }
    return taken;
  };
  return {
    push(piece) {
      if (state === "other") return piece;
      if (state !== "before") return inside(piece);
      held += piece;
      const begun = opening.exec(held)?.[0];
      // The white space before the value may go on.
      if (begun !== undefined && begun.length < held.length) {
        state = "inside";
        return inside(held.slice(begun.length));
      }
      if (held.length < longestOpening) return "";
      state = "other";
      return held;
    },
    end: () => (state === "before" ? held : ""),
  };
});

/** The value itself, for clients that want a text and no JSON. */
const plainText = onTexts(() => {
  let held = "";
  return {
    push(piece) {
      held += piece;
      return "";
    },
    end() {
      const json = parseJson(held);
      const value = isObject(json) ? json[member] : undefined;
      return typeof value === "string" ? value : held;
    },
  };
});
