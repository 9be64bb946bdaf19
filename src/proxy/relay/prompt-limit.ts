/** Refuses a prompt that is longer than the owner wants to pay for, in words that make clients compact the conversation. */

import type { Awaitable } from "../../lib/awaitable";
import { ProxyError } from "../../lib/errors";
import { withTimeLimit } from "../../lib/net/time-limit";
import type { RequestScope } from "../scope";
import { bytesPerToken, type Prompt, type TokenCount } from "../tokens/token-counts";
import type { Model } from "../upstream/models/model";
import { promptLimitOf } from "../upstream/models/prompt-limit";
import type { Book } from "./book";

/** Milliseconds that a request waits for its count; without one it is sent. */
const countTimeoutMs = 3_000;

/**
 * Undefined for a body that is too short for this many tokens, and if the count takes too long or fails, which the book notes.
 * @param bytes The length of the request's body.
 */
export async function countIfLong(
  { tokenCounts, logger }: Pick<RequestScope, "tokenCounts" | "logger">,
  { prompt, book }: CountedRequest,
  model: Model,
  bytes: number,
  limit: number,
): Promise<TokenCount | undefined> {
  const conversation = bytes < limit * bytesPerToken ? undefined : prompt.conversation();
  if (conversation === undefined) return undefined;
  tokenCounts.want(model.id);
  const counted = tokenCounts.count(conversation, model.id, prompt.whole).catch((thrown: unknown) => {
    logger.debug("A long prompt was not counted.", thrown);
    return undefined;
  });
  const count = await withTimeLimit(counted, countTimeoutMs, () => undefined);
  if (count === undefined) book.addFixup("prompt-uncounted");
  return count;
}

interface CountedRequest {
  prompt: Prompt;
  book: Pick<Book, "addFixup">;
}

/**
 * Counts only a body that is long enough to matter, in the tokenizer's worker. The count is not exact, so a prompt is
 * refused only if the least that the model can be expected to count is above the limit: a refusal in error would stop the
 * work, while a prompt that is a little too long costs a little more, and the client sees that in the usage.
 * @throws ProxyError `invalid_request` with the code `context_length_exceeded`.
 */
export function checkPromptLimit(
  parts: RequestScope,
  asked: CountedRequest,
  model: Model,
  bytes: number,
): Awaitable<void> {
  const limit = promptLimitOf(model, parts.config.current);
  if (limit !== undefined) return refuseLong(parts, asked, model, bytes, limit);
}

async function refuseLong(
  parts: RequestScope,
  asked: CountedRequest,
  model: Model,
  bytes: number,
  limit: number,
): Promise<void> {
  const count = await countIfLong(parts, asked, model, bytes, limit);
  if (count === undefined || count.atLeast <= limit) return;
  const message = `This model's maximum context length is ${limit} tokens. However, your messages resulted in ${Math.max(count.tokens, limit + 1)} tokens. Please reduce the length of the messages. (dragoman's limit: maxPromptTokens)`;
  throw new ProxyError("invalid_request", message, { code: "context_length_exceeded" });
}
