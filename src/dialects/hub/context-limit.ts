/**
 * The messages that say that a prompt is too long for its model: of Copilot, Anthropic and OpenAI; and of Copilot's newer
 * backends (seen in two clients that rewrite them for Claude Code and Codex, 2026-09).
 */
export const contextWords =
  /prompt token count of \d+ exceeds|prompt is too long|maximum context length is|request body is too large for model context window|input exceeds the context window of this model/i;
