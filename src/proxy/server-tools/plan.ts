/** Plans the tools that dragoman runs for a request: which functions the model gets, and which tools wait. */

import type { ClientDialect, Conversation, JsonObject } from "../../dialects/hub/conversation";
import { type Notes, unnoted } from "../../dialects/hub/notes";
import { type OfferedTools, offerFunctions } from "../../dialects/hub/server-offers";
import { deferTools, hasToolSearch, withoutWaiting } from "../../dialects/hub/tool-search";
import { withNativeSearch } from "../../dialects/native-search";
import type { Outline } from "../../dialects/overview";
import type { Awaitable } from "../../lib/awaitable";
import type { Prompt } from "../tokens/token-counts";
import type { ToolParts, ToolTarget } from "./context";
import { maySearchNatively } from "./search-models";
import { maySearchTools } from "./tool-search";
import { serverTools } from "./tools";

export interface PlannedRequest {
  dialect: ClientDialect;
  body: JsonObject;
  outline: Outline;
  /** Undefined if the request cannot be decoded. */
  conversation(): Conversation | undefined;
}

/** What is sent in place of the client's tools. Undefined if they stay as they are. */
export function planTools(
  parts: ToolParts,
  asked: PlannedRequest,
  target: ToolTarget,
  notes = unnoted,
): Awaitable<OfferedTools | undefined> {
  const translated = mayOffer(asked, target) ? asked.conversation() : undefined;
  return translated && planServerTools(parts, translated, asked.dialect, target, notes);
}

/** A provider of the client's own dialect runs its tools itself. */
const mayOffer = ({ outline, dialect: client }: PlannedRequest, target: ToolTarget): boolean =>
  client !== target.dialect || (!target.provider && outline.offersServerTools?.(target.upstreamModel) === true);

/**
 * The request with functions for the tools that run here, and without the tools that the model is to search for.
 * @param client Where the upstream speaks it as well, its own search of tools is used.
 * @returns Undefined if nothing changed.
 */
async function planServerTools(
  parts: ToolParts,
  conversation: Conversation,
  client: ClientDialect,
  target: ToolTarget,
  notes: Notes,
): Promise<OfferedTools | undefined> {
  const { dialect, upstreamModel } = target;
  const isNative = client === dialect && hasToolSearch(upstreamModel, dialect);
  const deferred = maySearchTools(parts) ? deferTools(conversation, dialect, isNative) : undefined;
  const searching = deferred?.conversation ?? conversation;
  const native =
    client !== dialect && dialect === "responses" && maySearchNatively(parts, target)
      ? withNativeSearch(searching)
      : undefined;
  const request = native ?? searching;
  const offering = request.tools.flatMap((tool) => (tool.kind === "foreign" && tool.server ? [tool.server] : []));
  // A provider's model may be the first that is asked for. Without a list no model searches; an engine still may.
  if (offering.some(({ tool }) => tool === "web-search") && !parts.catalogue.presentModels())
    await parts.catalogue.models().catch(() => []);
  const offered = offerFunctions(request, (offer) => {
    const tool = serverTools[offer.tool];
    return tool.isAvailable(parts) ? tool.form(offer) : undefined;
  });
  if (!offered && !deferred && !native) return undefined;
  const isShown = [...(offered?.offers.values() ?? [])].some(({ isHidden }) => !isHidden);
  if (isShown) notes.addFixup("server-tools-here");
  if (deferred && deferred.waiting.tools.size > deferred.overflow) notes.addFixup("tools-deferred");
  if (deferred && deferred.overflow > 0) notes.addFixup("tools-over-limit");
  return {
    conversation: offered?.conversation ?? request,
    offers: offered?.offers ?? new Map(),
    waiting: deferred?.waiting,
  };
}

/** The prompt as the model counts it: tools that it is to search for are no part of it, whoever runs the search. */
export class PlannedPrompt implements Prompt {
  constructor(
    private readonly asked: PlannedRequest & Pick<Prompt, "whole">,
    private readonly plan: Pick<OfferedTools, "waiting" | "conversation"> | undefined,
    private readonly target: ToolTarget,
  ) {}

  get whole(): Prompt["whole"] {
    return this.asked.whole;
  }

  conversation(): Conversation | undefined {
    const { asked, plan, target } = this;
    const { dialect, upstreamModel } = target;
    const sent = plan?.waiting ? plan.conversation : asked.conversation();
    const isSearched = asked.dialect === dialect && hasToolSearch(upstreamModel, dialect);
    return isSearched && sent ? withoutWaiting(sent, dialect) : sent;
  }
}
