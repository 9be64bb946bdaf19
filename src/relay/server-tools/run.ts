/** What a tool that runs here gets, and what it gives. */

import type { Scope } from "../../app";
import type { Turn } from "../../dialects/hub/conversation";
import type { ServerToolCall, ServerToolOffer, ServerToolOutput } from "../../dialects/hub/server-tools";
import type { ReadText } from "../../net/json/json-skeleton";
import type { FailoverParts } from "../failover";
import type { Facts } from "../incoming";
import type { RunningRequest } from "../running-request";

export type ToolParts = FailoverParts & Pick<Scope, "limits" | "searchEngine">;

/** For the record of what runs for a tool. */
export const toolFacts: Facts = { initiator: "agent", reason: "a tool that runs for a reply", vision: false };

export interface ToolContext {
  parts: ToolParts;
  /** Of the request that the tool runs for. It is stopped when the client hangs up. */
  running: RunningRequest;
  /** What the conversation holds by now; missing where there is none. */
  turns?(): readonly Turn[];
  /** Missing if no text is marked. */
  whole?: ReadText;
}

/** Runs one call. Never throws: a failure is an output as well. */
export type ToolRun = (context: ToolContext, call: ServerToolCall, offer: ServerToolOffer) => Promise<ServerToolOutput>;
