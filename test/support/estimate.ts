/** The tokens of a conversation by the local vocabulary, without what was learned of a model. */

import type { Conversation } from "../../src/dialects/hub/conversation";
import { promptPartsOf } from "../../src/proxy/tokens/estimate";
import type { Tokenizer } from "../../src/proxy/tokens/tokenizer";

/** @param multiplier How many tokens of the model one of the vocabulary is. */
export async function estimateTokens(
  conversation: Conversation,
  tokenizer: Tokenizer,
  multiplier: number,
): Promise<number> {
  const { texts, fixed, whole } = promptPartsOf(conversation);
  return Math.ceil((await tokenizer.count(texts.map((text) => whole(text)))) * multiplier + fixed);
}
