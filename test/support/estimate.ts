/** The tokens of a conversation by the local vocabulary, without what was learned of a model. */
import { promptPartsOf } from "../../src/dialects/estimate";
import type { Conversation } from "../../src/dialects/hub/conversation";
import type { Tokenizer } from "../../src/dialects/tokenizer";

/** @param multiplier How many tokens of the model one of the vocabulary is. */
export async function estimateTokens(
  conversation: Conversation,
  tokenizer: Tokenizer,
  multiplier: number,
): Promise<number> {
  const { texts, tools, fixed } = promptPartsOf(conversation);
  return Math.ceil((await tokenizer.count([...texts, ...tools])) * multiplier + fixed);
}
