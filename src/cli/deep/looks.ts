/**
 * The looks of `dragoman doctor --deep`: each asks one question about the upstream of today, and keeps names, codes
 * and counts of the answer. Nothing of the person is kept: no number, no text, no name that is not public.
 */
import { upstreamPaths } from "../../lib/api-paths";
import { isObject } from "../../lib/json";
import { plainName } from "../../lib/json-shape";
import { currentModels } from "../../proxy/upstream/models/known-models";
import {
  anyClaude,
  blocksIn,
  type DeepLook,
  type Findings,
  type Json,
  message,
  namesIn,
  objectAt,
  question,
  statusOf,
  union,
  withMessages,
  withResponses,
} from "./look-parts";
import { modelLooks } from "./model-looks";
import { cheapest } from "./plan";

/** Milliseconds between two model lists. */
const pauseMs = 500;

const pricesOf = (item: Json) => objectAt(objectAt(item, "billing"), "token_prices");
const adaptiveClaude = withMessages(({ supports }) => supports.adaptiveThinking);

/** Free ones first, then by what they cost. */
export const deepLooks: readonly DeepLook[] = [
  {
    name: "prices",
    question: "How are prices named in the model list?",
    calls: 0,
    async run({ items }) {
      const priced = items.map(pricesOf).filter((prices) => Object.keys(prices).length > 0);
      const long = priced.find((prices) => isObject(prices.long_context));
      const first = objectAt(long ?? priced[0], "default");
      const price = first.input_price;
      return {
        billing_names: union(items.map((item) => namesIn(item.billing))),
        token_prices_names: union(priced.map(namesIn)),
        default_names: union(priced.map((prices) => namesIn(prices.default))),
        long_names: namesIn(objectAt(long, "long_context")),
        boundary_names: long ? namesIn(long.default).filter((name) => !name.endsWith("_price")) : [],
        price_type: price === undefined ? null : typeof price,
      };
    },
  },
  {
    name: "lists",
    question: "Does the model list differ from call to call?",
    calls: 0,
    async run({ ask, items }) {
      const idsOf = (list: readonly unknown[]) => list.filter(isObject).map(({ id }) => String(id));
      const lists = [idsOf(items)];
      for (let times = 0; times < 2; times++) {
        await Bun.sleep(pauseMs);
        const { json } = await ask("/models");
        if (isObject(json) && Array.isArray(json.data)) lists.push(idsOf(json.data));
      }
      const differing = union(lists).filter((id) => !lists.every((list) => list.includes(id))).length;
      return { lists: lists.length, counts: lists.map((list) => String(list.length)), differing };
    },
  },
  {
    name: "auto",
    question: "Does GitHub choose models for this plan?",
    calls: 0,
    async run({ ask, items, models, user }) {
      const asked = { prompt: question, has_image: false };
      const forms: [string, Json][] = [
        ["auto", {}],
        ["auto_hydra", { hydra_rl_multi_turn: {} }],
        ["auto_object", { multi_turn: { routing_intent: "anchor", turns_since_anchor: 0 } }],
        ["auto_boolean", { multi_turn: false }],
        ["auto_tier", { tier: "efficiency" }],
      ];
      const found: Findings[] = [];
      for (const [name, more] of forms) found.push(statusOf(name, await ask("/auto", { ...asked, ...more })));
      const meta = await ask("/meta");
      const tiers = objectAt(meta.json, "auto").tiers;
      const session = await ask("/models/session", { auto_mode: { model_hints: ["auto"] } });
      return {
        models: models.length,
        enabled: models.filter(({ enabled }) => enabled).length,
        picked: models.filter(({ picked }) => picked).length,
        plan: wordAt(user, "copilot_plan"),
        sku: wordAt(user, "access_type_sku"),
        unpicked: items.filter((item) => item.model_picker_enabled === false).length,
        ...Object.assign({}, ...found),
        ...statusOf("meta", meta),
        tiers: Array.isArray(tiers) ? tiers.filter(isObject).map(({ id }) => plainName(String(id))) : [],
        ...statusOf("session", session),
      };
    },
  },
  {
    name: "identity",
    question: "Which client and host does the account have?",
    calls: 0,
    async run({ account, ask, user }) {
      const { baseUrl, mode } = await account.copilotToken();
      const stated = objectAt(user, "endpoints").api;
      const { status, code, text } = await ask("/models");
      const flagAt = (name: string) => (isObject(user) && typeof user[name] === "boolean" ? user[name] : null);
      return {
        cli_enabled: flagAt("cli_enabled"),
        chat_enabled: flagAt("chat_enabled"),
        host: publicHost(baseUrl),
        is_host_stated: typeof stated === "string" ? URL.parse(stated)?.host === URL.parse(baseUrl)?.host : null,
        mode,
        app: account.app === "vscode" || account.app === "opencode" ? account.app : "other",
        models_status: status,
        models_code: code,
        ...(status !== 200 && { models_words: phrases.filter((phrase) => text.includes(phrase)) }),
      };
    },
  },
  {
    name: "endpoints",
    question: "Which endpoints serve the newest models?",
    calls: 0,
    async run({ items, models }) {
      // Other ids may be a company's own.
      const listed = items.filter(
        (item) => currentModels.has(String(item.id)) && models.some(({ id, enabled }) => enabled && id === item.id),
      );
      const endpoints = (item: Json) =>
        Array.isArray(item.supported_endpoints) ? item.supported_endpoints.map(String).filter(isPath) : [];
      const ofAll = (names: RegExp) => union(listed.filter(({ id }) => names.test(String(id))).map(endpoints));
      return {
        ids: listed.map((item) => `${item.id}: ${endpoints(item).join(" ")}`),
        gpt: ofAll(/^gpt-(?:5\.[4-9]|[6-9])/),
        claude: ofAll(/^claude-/),
      };
    },
  },
  {
    name: "counting",
    question: "Does GitHub count tokens?",
    calls: 0,
    model: anyClaude,
    async run({ ask }, model) {
      const { max_tokens: _, ...body } = message(model, {});
      const { status, code, json } = await ask("/v1/messages/count_tokens", body);
      return { status, code, names: namesIn(json) };
    },
  },
  {
    name: "unnamed",
    question: "Is a chat request answered that names no model? (Asked where the plan may have Auto only.)",
    calls: 1,
    model: ({ models }) =>
      models.some(({ picked }) => picked)
        ? undefined
        : cheapest(models.filter(({ dialects }) => dialects.includes("chat"))),
    async run({ ask }) {
      const { status, code, json } = await ask(upstreamPaths.chat, {
        messages: [{ role: "user", content: question }],
      });
      return { status, code, names_model: isObject(json) && typeof json.model === "string" };
    },
  },
  {
    name: "billing-line",
    question: "Is Claude Code's billing line refused?",
    calls: 1,
    model: anyClaude,
    async run({ ask }, model) {
      const system = [{ type: "text", text: "x-anthropic-billing-header: cc_version=2.1.294; cc_entrypoint=cli;" }];
      const { status, code } = await ask(upstreamPaths.messages, message(model, { system }));
      return { status, code };
    },
  },
  {
    name: "compaction",
    question: "Is a conversation compacted by /responses?",
    calls: 1,
    model: withResponses,
    async run({ ask }, model) {
      const input = [{ type: "message", role: "user", content: question }, { type: "compaction_trigger" }];
      const seen = await ask(upstreamPaths.responses, { model: model?.id, input, store: false });
      const types = blocksIn(seen).map(({ type }) => plainName(String(type)));
      return { status: seen.status, code: seen.code, item_types: union([types]), items: types.length };
    },
  },
  {
    name: "server-tools",
    question: "Are the tools for web search and images accepted?",
    calls: 2,
    model: withResponses,
    async run({ ask }, model) {
      const found: Findings[] = [];
      for (const type of ["web_search", "image_generation"]) {
        const body = {
          model: model?.id,
          input: question,
          tools: [{ type }],
          tool_choice: "none",
          max_output_tokens: 16,
        };
        found.push(statusOf(type, await ask(upstreamPaths.responses, { ...body, store: false })));
      }
      return Object.assign({}, ...found);
    },
  },
  {
    name: "cache-hour",
    question: "Does the cache of Claude keep a prompt for an hour?",
    calls: 2,
    model: anyClaude,
    async run({ ask }, model) {
      const text = "The weather of a calm day in a small town. ".repeat(220);
      const system = [{ type: "text", text, cache_control: { type: "ephemeral", ttl: "1h" } }];
      const headers = { "anthropic-beta": "extended-cache-ttl-2025-04-11" };
      const first = await ask(upstreamPaths.messages, message(model, { system }), { headers });
      const second = await ask(upstreamPaths.messages, message(model, { system }), { headers });
      const creation = objectAt(objectAt(first.json, "usage"), "cache_creation");
      return {
        status: first.status,
        code: first.code,
        again_status: second.status,
        creation_names: namesIn(creation),
        has_hour_tokens: Number(creation.ephemeral_1h_input_tokens) > 0,
        is_read_again: Number(objectAt(second.json, "usage").cache_read_input_tokens) > 0,
      };
    },
  },
  {
    name: "thinking",
    question: "Which forms of thinking does Claude accept, and when is it shown?",
    calls: 3,
    model: adaptiveClaude,
    async run({ ask }, model) {
      const forms: [string, Json][] = [
        ["updates", { type: "adaptive", display: "updates" }],
        ["none", { type: "adaptive" }],
        ["disabled", { type: "disabled" }],
      ];
      const found: Findings[] = [];
      for (const [name, thinking] of forms) {
        const seen = await ask(upstreamPaths.messages, message(model, { thinking }));
        const texts = blocksIn(seen).filter(({ type }) => type === "thinking");
        const hasText = texts.some(({ thinking: text }) => typeof text === "string" && text !== "");
        found.push(statusOf(name, seen), seen.status === 200 ? { [`${name}_has_text`]: hasText } : {});
      }
      return Object.assign({}, ...found);
    },
  },
  {
    name: "fields",
    question: "Are the newest fields of Claude Code refused?",
    calls: 3,
    model: anyClaude,
    async run({ ask }, model) {
      const found: Findings[] = [];
      for (const [name, value] of Object.entries({ safeguards: [], diagnostics: {}, fallbacks: "default" }))
        found.push(statusOf(name, await ask(upstreamPaths.messages, message(model, { [name]: value }))));
      return Object.assign({}, ...found);
    },
  },
  ...modelLooks,
  {
    name: "quota",
    question: "How is the quota named?",
    calls: 0,
    async run({ seen, user }) {
      const snapshots = objectAt(user, "quota_snapshots");
      const premium = isObject(snapshots.premium_interactions)
        ? snapshots.premium_interactions
        : snapshots.premium_models;
      const sent = seen.flatMap(({ headers }) =>
        [...headers].filter(([name]) => name.startsWith("x-quota-snapshot-premium")).map(([, value]) => value),
      );
      return {
        names: namesIn(user),
        snapshot_names: namesIn(snapshots),
        premium_names: namesIn(premium),
        is_pooled: isObject(premium) && premium.unlimited === true && premium.token_based_billing === true,
        header_names: union(sent.map((value) => namesIn(Object.fromEntries(new URLSearchParams(value))))),
      };
    },
  },
  {
    name: "backends",
    question: "Which services stand behind Claude? (Counted over the answers so far.)",
    calls: 0,
    async run({ seen }) {
      const claude = seen.filter(({ json }) => isObject(json) && json.type === "message");
      const vertex = claude.filter(({ text, headers }) => /req_vrtx_/.test(text + [...headers].join(" "))).length;
      const bedrock = claude.filter(({ text }) => text.includes("amazon-bedrock-invocationMetrics")).length;
      return { vertex, bedrock, other: claude.length - vertex - bedrock };
    },
  },
];

/** A word of GitHub's, such as a plan. */
function wordAt(value: unknown, name: string): string | null {
  const word = isObject(value) ? value[name] : undefined;
  return typeof word === "string" ? plainName(word) : null;
}

const isPath = (text: string): boolean => /^(?:ws:)?\/[a-z0-9/_-]{1,60}$/.test(text);

/** The host if it is one of GitHub's own, which many people share. */
const publicHost = (url: string): string => {
  const host = URL.parse(url)?.hostname ?? "";
  return /^api(?:\.(?:individual|business|enterprise))?\.githubcopilot\.com$/.test(host) ? host : "another";
};

/** Of a refusal only these words are kept: what else it says may name an organization. */
const phrases = [
  "not authorized to use this Copilot feature",
  "not available for integrator",
  "Access to this endpoint is forbidden",
  "Personal Access Tokens are not supported",
  "Resource not accessible by integration",
  "Misdirected Request",
  "API version is no longer supported",
];
