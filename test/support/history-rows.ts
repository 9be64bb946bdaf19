/** Exchanges made by hand, for the history. */

import { type Entry, nothingKnown } from "../../src/books/history/entry";

export const noon = Date.UTC(2026, 0, 2, 12);

let serial = 0;

/** Another exchange each time, of one kind unless told otherwise. */
export function entry(differing: Partial<Entry> = {}): Entry {
  serial += 1;
  const { account_id = "ada" } = differing;
  return {
    ...nothingKnown,
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
    client_name: "claude-cli/2.0",
    input_tokens: 10,
    output_tokens: 20,
    tokens_estimated: 0,
    cost_at_least: 0,
    cost: 1_250_000_000,
    cost_unit: differing.cost === null ? null : "credits",
    fixups: '["created-field"]',
    dropped: "[]",
    ...differing,
  };
}
