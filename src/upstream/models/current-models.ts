/**
 * The public models of GitHub Copilot, one row for each. What people read and try takes its names from here, where no
 * account's own list is at hand: examples, placeholders, documents. A model that is retired is one row less.
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

export const currentModels: ReadonlySet<string> = new Set(listed.trim().split(/\s+/));

/** For examples of each kind. */
export const exampleModels = {
  small: "gpt-6-luna",
  gpt: "gpt-6.1-sol",
  claude: "claude-sonnet-5.5",
  haiku: "claude-haiku-5.5",
} as const;
