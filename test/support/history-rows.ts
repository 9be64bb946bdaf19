/** Exchanges made by hand, for the history. */

import { type InFlightRequest, runningColumns } from "../../src/history/entry";
import type { Entry } from "../../src/history/history";

export const noon = Date.UTC(2026, 0, 2, 12);

let serial = 0;

/** Another exchange each time, of one kind unless told otherwise. */
export function entry(differing: Partial<Entry> = {}): Entry {
  serial += 1;
  const { account_id = "ada" } = differing;
  return {
    request_id: `req_${serial}`,
    started_at_ms: noon,
    duration_ms: 1_234,
    first_byte_ms: 321,
    path: "/v1/messages",
    client_dialect: "messages",
    upstream_dialect: "chat",
    upstream_endpoint: "/chat/completions",
    account_id,
    account_key: account_id === null ? null : `github.com/${account_id}`,
    client_model: "claude-sonnet-4-6",
    upstream_model: "claude-sonnet-4.6",
    stream: 1,
    initiator: "user",
    initiator_reason: "the last message is a person's",
    attempts: '[{"account":"ada","status":200,"ms":300}]',
    http_status: 200,
    stop_reason: "end_turn",
    error_type: null,
    error_message: null,
    client_name: "claude-cli/2.0",
    key_name: null,
    member: null,
    searches: null,
    waited_for: null,
    waits_until_ms: null,
    waited_ms: null,
    parent_id: null,
    fallbacks: null,
    auto: null,
    session: null,
    cache_miss: null,
    cache_idle_ms: null,
    prompt: null,
    kind: null,
    agent_type: null,
    project: null,
    input_tokens: 10,
    output_tokens: 20,
    cached_tokens: null,
    cache_write_tokens: null,
    reasoning_tokens: null,
    tokens_estimated: 0,
    nano_credits: 1_250_000_000,
    premium_units: 0.33,
    fixups: '["missing-created"]',
    dropped: "[]",
    ...differing,
  };
}

/** A request that runs, as the relay reports it. */
export function runningState(more: Partial<InFlightRequest> = {}): InFlightRequest {
  const row = { ...entry(more), started_at_ms: Date.now(), ...more };
  return Object.fromEntries(runningColumns.map((name) => [name, row[name]])) as InFlightRequest;
}
