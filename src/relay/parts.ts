/** What the relay uses of the app. */
import type { App } from "../app";

export type RelayParts = Pick<
  App,
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
  | "stopping"
  | "tokenCounts"
  | "tracing"
  | "unsupportedParams"
  | "waitingRoom"
>;
