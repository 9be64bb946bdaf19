/** Whether a model can take the place of another one for a request: nothing of what the client sent may be lost. */

import type { Part, Signature } from "../../dialects/hub/conversation";
import { nameOf } from "../../dialects/hub/foreign";
import type { Awaitable } from "../../lib/awaitable";
import type { RequestScope } from "../scope";
import type { Exchange } from "./exchange";
import { countIfLong } from "./prompt-limit";
import { isMadeBy } from "./references";
import type { ChatTarget } from "./target";

/**
 * Why the model cannot take the place of the first one; undefined if it can. What cannot be encoded for it at all is found
 * when that is tried.
 * @returns The end of a sentence: `it sees no images`.
 */
export async function unfitReason(
  parts: RequestScope,
  exchange: Exchange,
  first: ChatTarget | undefined,
  target: ChatTarget,
): Promise<string | undefined> {
  const conversation = exchange.conversation();
  if (!conversation) return "the request has parts that dragoman cannot read";
  const { supports, limits } = target.model;
  const sent = conversation.turns.flatMap((turn) => [...partsIn(turn.parts)]);
  if (sent.some(({ kind }) => kind === "image")) {
    if (!supports.vision) return "it sees no images";
    if (target.model.provider?.assumed.includes("vision")) return "it is not known to see images";
  }
  if (!supports.tools && conversation.tools.some(({ kind }) => kind !== "foreign")) return "it calls no tools";
  for (const part of sent) {
    if (part.kind === "thinking" && part.signature && !(await reads(parts, target, first, part.signature)))
      return "the conversation has signed thinking of another maker";
    if (part.kind === "foreign" && !part.instead && (part.dialect !== target.dialect || target.provider))
      return `the conversation has a part of another maker: ${nameOf(part)}`;
  }
  const limit = limits.prompt ?? limits.context;
  if (limit === undefined) return undefined;
  const asked = { prompt: exchange, book: exchange.book };
  const count = await countIfLong(parts, asked, target.model, exchange.incoming.bytes.length, limit);
  return count !== undefined && count.tokens > limit ? `it takes at most ${limit} tokens of prompt` : undefined;
}

/** All parts, those in tool results too. */
function* partsIn(parts: readonly Part[]): Generator<Part> {
  for (const part of parts) {
    yield part;
    if (part.kind === "tool-result") yield* partsIn(part.parts);
  }
}

/** The makers of signatures that only one vendor's models serve. */
const vendors: Partial<Record<Signature["dialect"], RegExp>> = { messages: /Anthropic/, responses: /OpenAI/ };

/**
 * A signature is readable only by its maker. Its dialect says who that may be; who it was is remembered, as a fallback that began
 * with a tool has to go on with its result. What a provider can read is not known.
 */
function reads(
  { affinity }: RequestScope,
  { dialect, model, provider }: ChatTarget,
  first: ChatTarget | undefined,
  signature: Signature,
): Awaitable<boolean> {
  if (provider || signature.dialect !== dialect) return false;
  const isLikely = vendors[dialect]?.test(model.vendor) ?? model.vendor === first?.model.vendor;
  return isLikely || isMadeBy(affinity, signature, model.vendor);
}
