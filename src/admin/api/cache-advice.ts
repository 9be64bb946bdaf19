/** The advice for turns whose prompt the upstream's cache did not have. */
import type { CacheMiss } from "../../upstream/cache-watch";

interface Advice {
  changed: string;
  advice: string;
}

export const cacheAdvice: Record<CacheMiss, Advice> = {
  model: {
    changed: "The model changed.",
    advice: "Each model has its own cache. Change the model at the start of a conversation, not in the middle.",
  },
  account: {
    changed: "Another account served.",
    advice:
      "Each account has its own cache. Set `accountAffinity` to `true` in the config, so that a session stays with its account.",
  },
  tools: {
    changed: "The tools changed.",
    advice:
      "Tools come first in the prompt, so a tool that is added, removed or reordered makes the rest new. Connect MCP servers before the conversation starts.",
  },
  system: {
    changed: "The system prompt changed.",
    advice:
      "A client that puts the time, a token count or the state of a repository into the system prompt pays for the whole conversation in each turn. Such text belongs at the end of the newest message.",
  },
  expired: {
    changed: "More time passed than the cache keeps a prompt, but less than an hour.",
    advice:
      'The cache keeps a prompt for five minutes after its last use. After a break the whole prompt is paid once. Claude keeps it for an hour where a client asks for that and the config has `promptCache` at "1h", for twice the price of writing it.',
  },
  expired_long: {
    changed: "More than an hour passed.",
    advice:
      "No cache keeps a prompt that long: the whole prompt is paid once. Begin a new conversation after a long break.",
  },
  shortened: {
    changed: "The conversation became shorter.",
    advice:
      "The client compacted or edited its history. One such turn is normal; many mean that it compacts too often.",
  },
  no_key: {
    changed: "The request had no cache key.",
    advice:
      "Without a key the upstream may send a turn to a machine that has not seen the prompt. Let a client of the OpenAI APIs send `prompt_cache_key`, and one of the Messages API its session in `metadata.user_id` or `x-session-id`; keep `promptCache` at `auto` in the config.",
  },
  no_marks: {
    changed: "The request had no cache marks.",
    advice:
      "Claude caches only up to marks. Let the client set `cache_control`; for clients of the OpenAI APIs keep `promptCache` at `auto` in the config.",
  },
  unknown: {
    changed: "Nothing at the beginning changed.",
    advice: "An earlier message changed, or the upstream no longer had the prompt. It promises nothing.",
  },
};
