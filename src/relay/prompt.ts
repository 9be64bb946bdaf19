/** What a request becomes where dragoman runs tools, and what of it is in the model's prompt. */
import { codecs } from "../dialects/codecs";
import type { ClientDialect, Conversation, JsonObject } from "../dialects/hub/conversation";
import { hasToolSearch, withoutWaiting } from "../dialects/hub/tool-search";
import type { Prompt } from "../tokens/token-counts";
import { planServerTools, type ServerToolPlan } from "./server-tools/open-loop";
import type { ToolParts } from "./server-tools/run";
import { type ChatTarget, isProvided } from "./target";

export interface PlannedRequest {
  dialect: ClientDialect;
  body: JsonObject;
  /** Undefined if the request cannot be decoded. */
  conversation(): Conversation | undefined;
}

/** What is sent in place of the client's tools; undefined if they stay as they are. */
export async function planTools(
  parts: ToolParts,
  { body, conversation, dialect }: PlannedRequest,
  target: ChatTarget,
): Promise<ServerToolPlan | undefined> {
  const translated = mayOffer(dialect, body, target) ? conversation() : undefined;
  return translated && (await planServerTools(parts, translated, dialect, target));
}

/** A provider of the client's own dialect runs its tools itself. */
const mayOffer = (client: ClientDialect, body: JsonObject, target: ChatTarget): boolean =>
  client !== target.dialect ||
  (!isProvided(target) && codecs[target.dialect].offersServerTools(body, target.upstreamModel));

/** The prompt as the model counts it: tools that it is to search for are no part of it, whoever runs the search. */
export function promptOf(
  asked: PlannedRequest & Pick<Prompt, "whole">,
  plan: Pick<ServerToolPlan, "waiting" | "conversation"> | undefined,
  { dialect, upstreamModel }: ChatTarget,
): Prompt {
  const isSearched = asked.dialect === dialect && hasToolSearch(upstreamModel, dialect);
  return {
    whole: asked.whole,
    conversation() {
      const sent = plan?.waiting ? plan.conversation : asked.conversation();
      return isSearched && sent ? withoutWaiting(sent, dialect) : sent;
    },
  };
}
