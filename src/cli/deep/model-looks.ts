/** Looks about what single models and vendors take: each decides one of the forms in which requests are sent. */
import { upstreamPaths } from "../../lib/api-paths";
import { isObject } from "../../lib/json";
import { plainName } from "../../lib/json-shape";
import type { Model } from "../../proxy/upstream/models/model";
import {
  anyClaude,
  type DeepLook,
  type Findings,
  type Json,
  type LookContext,
  message,
  objectAt,
  question,
  statusOf,
  union,
  withMessages,
} from "./look-parts";
import { cheapest } from "./plan";

const tool = (schema: Json): Json => ({ name: "look", description: "Looks.", input_schema: schema });
const inner = (properties: Json): Json => ({ type: "object", properties });

/** Schemas that hosts of Gemini were seen to refuse, by what is in them. */
const schemas: Record<string, Json> = {
  nullable_list: inner({ a: { type: ["string", "null"] } }),
  nullable_items: inner({ a: { type: "array", items: { type: ["object", "null"] } } }),
  number_enum: inner({ a: { type: "integer", enum: [1, 2] } }),
  boolean_schema: inner({ a: true }),
  any_of_null: inner({ a: { anyOf: [{ type: "string" }, { type: "null" }] } }),
};

/** The newest model of each family. */
const newestOf = ({ models }: LookContext): Model[] =>
  ["opus", "sonnet", "haiku"].flatMap((family) => {
    const own = models.filter(({ id, enabled }) => enabled && id.startsWith(`claude-${family}-`));
    return own.toSorted((one, other) => other.id.localeCompare(one.id, "en", { numeric: true })).slice(0, 1);
  });
/** Their price is the bound for each. */
const dearestOf = (models: Model[]): Model | undefined =>
  models.toSorted((one, other) => (other.price.tokens?.output ?? 0) - (one.price.tokens?.output ?? 0))[0];

/** The statuses of one call for each form. */
async function inForms(forms: Record<string, Json>, ask: (form: Json) => ReturnType<LookContext["ask"]>) {
  const found: Findings[] = [];
  for (const [name, form] of Object.entries(forms)) found.push(statusOf(name, await ask(form)));
  return Object.assign({}, ...found) as Findings;
}

/** Bytes of a body that no host takes. */
const hugeBytes = 20 * 1024 * 1024;

export const modelLooks: readonly DeepLook[] = [
  {
    name: "warnings",
    question: "What does the model list warn of, and how does it name prices?",
    calls: 0,
    async run({ items, models }) {
      const given = models.flatMap(({ warnings = [] }) => warnings.map(({ code }) => plainName(code)));
      const kinds = items.map(({ warning_text: texts }) => (isObject(texts) ? Object.keys(texts).map(plainName) : []));
      const categories = models.flatMap(({ priceCategory }) => (priceCategory ? [plainName(priceCategory)] : []));
      const priced = (item: Json) => objectAt(objectAt(item, "billing"), "token_prices");
      const claude = items.filter(({ id }) => String(id).startsWith("claude-"));
      return {
        codes: union([given]),
        text_names: union(kinds),
        price_categories: union([categories]),
        claude_with_long_price: claude.filter((item) => isObject(priced(item).long_context)).length,
      };
    },
  },
  {
    name: "image-paths",
    question: "Is there a path for making images? (It is asked for none.)",
    calls: 0,
    async run({ ask }) {
      const { status, code } = await ask("/v1/images/generations", {});
      return { status, code };
    },
  },
  {
    name: "always-thinking",
    question: "Do models that always think need to be told so?",
    calls: 2,
    model: withMessages(({ supports }) => supports.alwaysThinks === true),
    run: ({ ask }, model) =>
      inForms({ omitted: {}, off: { thinking: { type: "disabled" } } }, (form) =>
        ask(upstreamPaths.messages, message(model, form)),
      ),
  },
  {
    name: "forced-choice",
    question: "Can the newest Claude be made to call a tool?",
    calls: 3,
    model: (context) => dearestOf(newestOf(context)),
    async run(context) {
      const found: Findings[] = [];
      for (const model of newestOf(context)) {
        const body = message(model, { tools: [tool(inner({}))], tool_choice: { type: "any" } });
        found.push(statusOf(plainName(model.id.split("-")[1]!), await context.ask(upstreamPaths.messages, body)));
      }
      return Object.assign({}, ...found);
    },
  },
  {
    name: "gemini-schemas",
    question: "Which schemas of tools does Gemini refuse?",
    calls: Object.keys(schemas).length,
    model: ({ models }) => cheapest(models.filter(({ id, enabled }) => enabled && id.startsWith("gemini-"))),
    run: ({ ask }, model) =>
      inForms(schemas, (parameters) =>
        ask(upstreamPaths.chat, {
          model: model?.id,
          max_tokens: 16,
          messages: [{ role: "user", content: question }],
          tools: [{ type: "function", function: { name: "look", parameters } }],
        }),
      ),
  },
  {
    name: "claude-tools",
    question: "Which fields and tools of Anthropic's API does Copilot take?",
    calls: 4,
    model: anyClaude,
    async run({ ask }, model) {
      const plain = tool(inner({}));
      const forms: Record<string, Json> = {
        strict: { tools: [{ ...plain, strict: true, input_schema: { ...inner({}), additionalProperties: false } }] },
        eager: { tools: [{ ...plain, eager_input_streaming: true }] },
        editor: { tools: [{ type: "text_editor_20250728", name: "str_replace_based_edit_tool" }] },
      };
      const compact = { context_management: { edits: [{ type: "compact_20260112" }] } };
      const headers = { "anthropic-beta": "compact-2026-01-12" };
      return {
        ...(await inForms(forms, (form) => ask(upstreamPaths.messages, message(model, form)))),
        ...statusOf("compact", await ask(upstreamPaths.messages, message(model, compact), { headers })),
      };
    },
  },
  {
    name: "system-text",
    question: "May the system prompt of Claude be a text in place of a list?",
    calls: 1,
    model: anyClaude,
    run: ({ ask }, model) =>
      inForms({ text: { system: "Be brief." } }, (form) => ask(upstreamPaths.messages, message(model, form))),
  },
  {
    name: "too-large",
    question: "How is a prompt refused that is far too large? (20 MB are uploaded.)",
    calls: 1,
    model: anyClaude,
    async run({ ask }, model) {
      const content = "word ".repeat(hugeBytes / 5);
      const { status, code, text } = await ask(
        upstreamPaths.messages,
        message(model, { messages: [{ role: "user", content }] }),
      );
      return { status, code, is_parse_failure: text.includes("failed to parse request") };
    },
  },
];
