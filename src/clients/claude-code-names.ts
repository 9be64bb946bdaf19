/** The names of models in Claude Code's list: it takes only ids that name Claude or Anthropic, and reads much from an id. */
import { claudeCodeName } from "./agent-names";

/** At the end of the ids of other vendors' models: `gpt-5.4:claude`. At the beginning it would be the name of a provider. */
const mark = ":claude";

/** Of Claude's own models the ids are as Anthropic writes them, see {@link anthropicId}. */
export const idForClaudeCode = (id: string): string =>
  id.startsWith("claude-") ? anthropicId(id) : /claude|anthropic/i.test(id) ? id : id + mark;

/** The id that a name from that list stands for; any other name is returned as it is. */
export const idFromClaudeCode = (name: string): string => (name.endsWith(mark) ? name.slice(0, -mark.length) : name);

/**
 * A model's id as Anthropic writes it: `claude-sonnet-4-6`. Claude Code reads the family and the version from the id:
 * `claude-sonnet-4.6` is Sonnet 4 to it, which it calls retired and offers no effort for (seen in 2.1.197, 2026-11).
 */
export const anthropicId = (id: string): string => (id.startsWith("claude-") ? id.replaceAll(".", "-") : id);

export const isClaudeCode = (userAgent: string | null): boolean => userAgent !== null && claudeCodeName.test(userAgent);
