/**
 * What is known of models by their names, for where the model list says nothing: what it does say counts. This is the only
 * place where a name decides what a model can do.
 */

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
  /** On chat completions it refuses `max_tokens` and knows `max_completion_tokens`. */
  completionTokens: [
    {
      names: /^(?:gpt-(?:[5-9]|\d\d)|o\d)/,
      source:
        "“Unsupported parameter: 'max_tokens'” for GPT-5, caozhiyuan/copilot-api 2026-08; OpenAI's reference for o-series",
    },
  ],
  /** It is meant for small tasks. Lists say `model_picker_category: lightweight`, and since 2026-06 a price category. */
  light: [{ names: /-(?:mini|flash|haiku|nano|luna)\b/, source: "the vendors' price lists, 2026-09" }],
  /** It accepts no `temperature` and no `top_p` on chat completions. */
  fixedSampling: [{ names: /^o\d/, source: "OpenAI's documentation of reasoning models, 2025-12" }],
} satisfies Record<string, Row[]>;

/** What a model can do by its name. */
export const namedAbilities = (id: string) => ({
  toolSearch: isKnownFor("toolSearch", id),
  completionTokens: isKnownFor("completionTokens", id),
  fixedSampling: isKnownFor("fixedSampling", id),
});

/** Whether a model of this name is known to be so. */
export const isKnownFor = (fact: keyof typeof facts, id: string): boolean =>
  facts[fact].some(({ names }) => names.test(id));
