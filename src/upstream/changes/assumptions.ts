/**
 * The newest facts about GitHub Copilot that this version assumes: from where, of when, and which look of
 * `dragoman doctor --deep --report` settles each. The document and the comparison of reports come from this table.
 */

/** What a look has found: names, codes and counts by name. */
export type Findings = Readonly<Record<string, string | number | boolean | null | readonly string[]>>;

export const lookNames = [
  "prices",
  "lists",
  "auto",
  "identity",
  "quota",
  "endpoints",
  "counting",
  "unnamed",
  "thinking",
  "fields",
  "cache-hour",
  "compaction",
  "billing-line",
  "server-tools",
  "backends",
] as const;
export type LookName = (typeof lookNames)[number];

export interface Assumption {
  assumes: string;
  /** Where the fact is from. */
  source: string;
  /** Month in which it was seen. */
  date: string;
  look: LookName;
  /** Whether findings fit; undefined if they do not say. */
  fits(found: Findings): boolean | undefined;
  /** Of the findings, those that it is about. */
  about: readonly string[];
}

const listIn = (found: Findings, name: string): readonly string[] | undefined => {
  const value = found[name];
  return Array.isArray(value) ? value : undefined;
};
const hasOneOf =
  (name: string, ...wanted: string[]) =>
  (found: Findings): boolean | undefined => {
    const names = listIn(found, name);
    return names && (names.length === 0 ? undefined : wanted.some((each) => names.includes(each)));
  };
const isOneOf =
  (name: string, ...wanted: (string | number | boolean)[]) =>
  (found: Findings): boolean | undefined => {
    const value = found[name];
    return value === undefined || value === null ? undefined : wanted.some((each) => each === value);
  };

// biome-ignore format: a table
export const assumptions: readonly Assumption[] = [
  { assumes: "Cached tokens are priced as `cache_read_price`, before that as `cache_price`.", source: "VS Code's client, opencode", date: "2026-09", look: "prices", about: ["default_names"], fits: hasOneOf("default_names", "cache_read_price", "cache_price") },
  { assumes: "A price for long prompts begins above `max_prompt_tokens`, before that above `context_max`.", source: "zed, VS Code's client", date: "2026-09", look: "prices", about: ["boundary_names"], fits: hasOneOf("boundary_names", "max_prompt_tokens", "context_max") },
  { assumes: "Prices are numbers, or decimal numbers as text.", source: "Floway", date: "2026-09", look: "prices", about: ["price_type"], fits: isOneOf("price_type", "number", "string") },
  { assumes: "Token prices are for a number of tokens that `batch_size` states.", source: "recordings", date: "2026-06", look: "prices", about: ["token_prices_names"], fits: hasOneOf("token_prices_names", "batch_size") },
  { assumes: "Lists of one account may differ from call to call, so a model is kept for a day.", source: "zed", date: "2026-09", look: "lists", about: ["differing"], fits: (found) => (typeof found.differing === "number" ? true : undefined) },
  { assumes: "Where no model is picked, the plan allows Auto only.", source: "OmniRoute, opencode", date: "2026-09", look: "unnamed", about: ["status"], fits: isOneOf("status", 200) },
  { assumes: "`POST /auto` answers 200 or 404, before that `POST /models/session` did.", source: "VS Code's client", date: "2026-10", look: "auto", about: ["auto_status", "session_status"], fits: (found) => isOneOf("auto_status", 200, 404, 503)(found) ?? isOneOf("session_status", 200, 404)(found) },
  { assumes: "The model host of the account is the one that the quota endpoint names.", source: "opencode", date: "2026-09", look: "identity", about: ["is_host_stated"], fits: isOneOf("is_host_stated", true) },
  { assumes: "An account may ask as this client, which counts as an editor.", source: "oh-my-pi", date: "2026-09", look: "identity", about: ["models_status", "models_code"], fits: isOneOf("models_status", 200) },
  { assumes: "A shared quota says with `has_quota` whether it is used up.", source: "VS Code's client", date: "2026-10", look: "quota", about: ["premium_names"], fits: (found) => (found.is_pooled === true ? hasOneOf("premium_names", "has_quota")(found) : undefined) },
  { assumes: "Headers state what is left as a percentage in `rem`, and as an amount in `totRem`.", source: "Floway", date: "2026-08", look: "quota", about: ["header_names"], fits: hasOneOf("header_names", "rem", "totRem") },
  { assumes: "GPT from 5.4 on is served on /responses.", source: "models.dev", date: "2026-09", look: "endpoints", about: ["gpt"], fits: hasOneOf("gpt", "/responses") },
  { assumes: "Claude is served on /v1/messages.", source: "models.dev", date: "2026-09", look: "endpoints", about: ["claude"], fits: hasOneOf("claude", "/v1/messages") },
  { assumes: "`/v1/messages/count_tokens` counts, or is 404.", source: "Floway", date: "2026-08", look: "counting", about: ["status", "names"], fits: (found) => (found.status === 404 ? true : isOneOf("status", 200)(found) && hasOneOf("names", "input_tokens")(found)) },
  { assumes: "`display: \"updates\"` is refused without its beta, so it is sent as `summarized`.", source: "Claude Code, Anthropic's API", date: "2026-10", look: "thinking", about: ["updates_status"], fits: isOneOf("updates_status", 400) },
  { assumes: "Thinking is shown only where `display` is `summarized`.", source: "Anthropic's API", date: "2026-09", look: "thinking", about: ["none_has_text"], fits: isOneOf("none_has_text", false) },
  { assumes: "Some Claude models refuse `thinking.type: \"disabled\"`.", source: "cline, CLIProxyAPI", date: "2026-09", look: "thinking", about: ["disabled_status"], fits: isOneOf("disabled_status", 200, 400) },
  { assumes: "`safeguards`, `diagnostics` and `fallbacks` are refused, so they are dropped.", source: "Claude Code, Bedrock", date: "2026-09", look: "fields", about: ["safeguards_status", "diagnostics_status", "fallbacks_status"], fits: (found) => (found.safeguards_status === undefined ? undefined : ["safeguards_status", "diagnostics_status", "fallbacks_status"].some((name) => found[name] === 400)) },
  { assumes: "The cache keeps a prompt for an hour with a beta and `ttl: \"1h\"`.", source: "VS Code's client", date: "2026-10", look: "cache-hour", about: ["status", "has_hour_tokens"], fits: isOneOf("status", 200) },
  { assumes: "`compaction_trigger` is answered with one or two items of compaction.", source: "Floway", date: "2026-07", look: "compaction", about: ["status", "item_types"], fits: hasOneOf("item_types", "compaction", "compaction_summary") },
  { assumes: "Claude Code's billing line in `system` may be refused, so it is dropped.", source: "ericc, Floway", date: "2026-01", look: "billing-line", about: ["status"], fits: isOneOf("status", 400) },
  { assumes: "Web search is accepted on /responses.", source: "VS Code's client", date: "2026-09", look: "server-tools", about: ["web_search_status"], fits: isOneOf("web_search_status", 200) },
  { assumes: "Image generation is refused on /responses, so it is dropped.", source: "Floway", date: "2026-09", look: "server-tools", about: ["image_generation_status"], fits: isOneOf("image_generation_status", 400) },
];

/** Ids that documents and clients name in public. Others may be a company's own. */
export const publicModelIds: ReadonlySet<string> = new Set(
  `claude-haiku-4.5 claude-sonnet-4.5 claude-sonnet-4.6 claude-sonnet-5 claude-opus-4.5 claude-opus-4.6 claude-opus-4.7
   claude-opus-4.8 claude-opus-5 claude-opus-5.5 claude-fable-5 claude-fable-5.1 gpt-5-mini gpt-5.3-codex gpt-5.4
   gpt-5.4-mini gpt-5.4-nano gpt-5.5 gpt-5.6-sol gpt-5.6-terra gpt-5.6-luna gpt-6-astra gpt-6-sol gpt-6-luna
   gemini-3.1-pro-preview gemini-3.5-flash gemini-3.8-flash grok-4.5 grok-4.6 grok-4.7 kimi-k2.7-code kimi-k3
   mai-code-1-flash mai-code-1.1-flash raptor-mini`.split(/\s+/),
);
