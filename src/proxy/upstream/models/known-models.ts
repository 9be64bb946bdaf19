/**
 * What is known of models by their names, for where no list says it: what a list does say counts. Everything else that names a
 * model takes the name from here, or from an account's list: examples, placeholders, documents. A model that is retired is one
 * row less.
 */

/** The generated list of pi 1.6.0, 2026-11-20; GitHub's notices of 2026-08-31 and 2026-10-02 name those that went. */
const listed = `
claude-fable-5 claude-fable-5.1 claude-fable-5.2 claude-opus-4.8 claude-opus-5 claude-opus-5.5 claude-sonnet-4.6
claude-sonnet-5 claude-sonnet-5.5 claude-haiku-4.5 claude-haiku-5.5
gemini-3.8-flash gemini-4-argon gemini-4-carbon gemini-4-hydrogen gemini-4-neon kimi-k3
gpt-5.3-codex gpt-5.4-nano gpt-5.6-luna gpt-5.6-sol gpt-5.6-terra gpt-6-astra gpt-6-luna gpt-6-sol gpt-6.1-sol
gpt-6.1-terra gpt-6.2-astra gpt-6.2-sol grok-4.5 grok-4.6 grok-4.7 mai-code-1.1-flash mai-code-2 mai-code-2-flash
microsoft-decision-1
`;

/** The models of GitHub Copilot that are public: other ids may be a company's own. */
export const currentModels: ReadonlySet<string> = new Set(listed.trim().split(/\s+/));

/** One of each kind, for examples. */
export const exampleModels = {
  small: "gpt-6-luna",
  gpt: "gpt-6.1-sol",
  claude: "claude-sonnet-5.5",
  opus: "claude-opus-5.5",
  haiku: "claude-haiku-5.5",
  gemini: "gemini-4-argon",
  flash: "gemini-3.8-flash",
} as const;

interface Row {
  /** Of the id that the upstream knows. */
  names: RegExp;
  /** Where the fact is from, and when it was seen. */
  source: string;
}

const facts = {
  /** Its prices for long prompts begin with the boundary itself, not with the first token above it. */
  isLongFromBoundary: [{ names: /^grok-/, source: "xAI's price list and models.dev, 2026-09: from 200,000 tokens on" }],
  /** The upstream searches for tools itself. Lists since 2026-08 say so in `supports.tool_search`. */
  toolSearch: [
    {
      names: /^claude-(?!haiku|3|instant)(?!(?:opus|sonnet)-4(?:[.-][0-4])?(?:-\d{8})?$)/,
      source:
        "Anthropic's documentation: Sonnet and Opus from 4.5 on, no Haiku, 2026-03; VS Code's client agrees, 2026-08",
    },
    {
      names: /^gpt-(?:5\.(?:[4-9]|\d\d)|[6-9]|\d\d)(?!.*-(?:mini|nano|luna))/,
      source: "OpenAI's documentation: from 5.4 on; VS Code's client names no small model, 2026-08",
    },
  ],
  /** It answers questions about a state, and takes no conversation. Lists say so by its endpoint. */
  decides: [{ names: /^microsoft-decision-/, source: "pi 1.6.0, 2026-11: served at `/v1/systemone` alone" }],
  /** On chat completions it refuses `max_tokens` and knows `max_completion_tokens`. */
  completionTokens: [
    {
      names: /^(?:gpt-(?:[5-9]|\d\d)|o\d)/,
      source:
        "“Unsupported parameter: 'max_tokens'” for GPT-5, caozhiyuan/copilot-api 2026-08; OpenAI's reference for o-series",
    },
  ],
  /** It is meant for small tasks. Lists say `model_picker_category: lightweight`, and since 2026-06 a price category. */
  light: [{ names: /-(?:mini|flash|haiku|nano|luna|hydrogen)\b/, source: "the vendors' price lists, 2026-11" }],
  /** It thinks with every request: one that leaves thinking out, or disables it, is refused. Lists have no word for it yet. */
  alwaysThinks: [
    {
      names: /^claude-(?:fable|mythos)/,
      source: "GitHub's SDK 1.0.15-preview.4, 2026-09: of `adaptive_only` models an omitted block is refused as well",
    },
    {
      names: /^claude-opus-(?:5[.-][5-9]|[6-9]|\d\d)/,
      source: "Anthropic's “What's new in Claude Opus 5.5”, 2026-09: it cannot be disabled",
    },
  ],
  /** “`tool_choice`: type "tool" and "any" are not supported for this model.” */
  noForcedCalls: [
    {
      names: /^claude-(?:fable-(?:5[.-][1-9]|[6-9]|\d\d)|mythos|(?:opus|sonnet)-(?:5[.-][5-9]|[6-9]|\d\d))/,
      source:
        "Anthropic's documentation, 2026-09; a run of 190 calls on Amazon Bedrock, 2026-10-05, has Sonnet 5.5, too",
    },
  ],
  /** It thinks adaptively also where a call is forced. */
  forcedCallsThink: [
    {
      names: /^claude-(?:fable-5|(?:opus|sonnet)-5|opus-4[.-][89])(?![.\d-])/,
      source: "langchain-ai/langchain-aws#1141 on Amazon Bedrock: Opus 4.8 and Sonnet 5 take both, 2026-09",
    },
  ],
  /** It takes `eager_input_streaming` of a tool. */
  eagerInput: [
    {
      names: /^claude-(?!haiku-4|3|instant)/,
      source: "pi 1.6.0, 2026-11: every Claude on GitHub Copilot but Haiku 4.5",
    },
  ],
  /** Messages of the role `system` may stand within the conversation. */
  systemTurns: [
    {
      names: /^claude-(?:fable|mythos|opus-(?:4[.-][89]|[5-9]|\d\d)|(?:sonnet|haiku)-(?:5[.-][5-9]|[6-9]|\d\d))/,
      source: "Anthropic's documentation, 2026-10, without Sonnet 5; pi 1.6.0 for GitHub Copilot, 2026-11",
    },
  ],
  /** Such a message may change the effort, which keeps the prompt in the upstream's cache. */
  turnEfforts: [
    {
      names: /^claude-(?:opus|sonnet)-(?:5[.-][5-9]|[6-9]|\d\d)/,
      source:
        "VS Code's client passes `per-turn-control-2026-07-01` to GitHub Copilot, 2026-10; Vercel's names these models",
    },
  ],
  /** Its reasoning holds only for the account that received it, and for the beginning of the conversation that it followed. */
  boundReasoning: [
    {
      names: /^claude-(?:fable-(?:5[.-][1-9]|[6-9]|\d\d)|mythos|(?:opus|sonnet|haiku)-(?:5[.-][5-9]|[6-9]|\d\d))/,
      source:
        "Anthropic's “Preserved thinking” and Amazon's “Thinking block binding”, 2026-09; OpenRouter's guide for the account",
    },
    {
      names: /^gpt-(?:6[.-][2-9]|[7-9]|\d\d)/,
      source: "pi 1.6.0, 2026-11: OpenAI leaves out reasoning of another organization, user or beginning, from 6.2 on",
    },
  ],
  /** It accepts no `temperature` and no `top_p` on chat completions. */
  fixedSampling: [{ names: /^o\d/, source: "OpenAI's documentation of reasoning models, 2025-12" }],
} satisfies Record<string, Row[]>;

/** What a model can do by its name. */
export const namedAbilities = (id: string) => ({
  toolSearch: isKnownFor("toolSearch", id),
  completionTokens: isKnownFor("completionTokens", id),
  fixedSampling: isKnownFor("fixedSampling", id),
  alwaysThinks: isKnownFor("alwaysThinks", id),
  noForcedCalls: isKnownFor("noForcedCalls", id),
  forcedCallsThink: isKnownFor("forcedCallsThink", id),
  eagerInput: isKnownFor("eagerInput", id),
  systemTurns: isKnownFor("systemTurns", id),
  turnEfforts: isKnownFor("turnEfforts", id),
});

/** Whether a model of this name is known to be so. */
export const isKnownFor = (fact: keyof typeof facts, id: string): boolean =>
  facts[fact].some(({ names }) => names.test(id));
