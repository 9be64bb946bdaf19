/** What the relay uses of the scope of a person. */
import type { Scope } from "../app";

export type RelayParts = Pick<
  Scope,
  | "accounts"
  | "affinity"
  | "auto"
  | "breaker"
  | "budgets"
  | "cacheWatch"
  | "catalogue"
  | "config"
  | "copilot"
  | "drift"
  | "exchangeMetrics"
  | "heldBodies"
  | "history"
  | "inFlight"
  | "limits"
  | "logger"
  | "losses"
  | "now"
  | "pool"
  | "providerModels"
  | "providers"
  | "searchEngine"
  | "stopping"
  | "tokenCounts"
  | "tracing"
  | "unsupportedParams"
  | "waitingRoom"
>;
