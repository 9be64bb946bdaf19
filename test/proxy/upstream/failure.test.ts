/** Rows: what an upstream's error means, what may help, and its words for a person. */
import { expect, test } from "bun:test";
import { examples } from "../../../src/deploy/documents/failure-examples";
import { isSuspensionAnswer } from "../../../src/people/accounts/suspension";
import { upstreamErrorIn } from "../../../src/proxy/upstream/copilot/failure";
import { isSuspensionEvent, rowOf, statuses, statusOf } from "../../../src/proxy/upstream/copilot/failure-match";
import { rows } from "../../../src/proxy/upstream/copilot/failure-rows";

test("each row is reached by its example, and none by its place alone", () => {
  expect(examples).toHaveLength(rows.length);
  for (const [at, meant] of rows.entries()) {
    const [status, code, message, param] = examples[at]!;
    expect([examples[at], rowOf(status, { code, message, param }) === meant]).toEqual([examples[at], true]);
    const rivals = rows.filter(
      (row) =>
        row.status.includes(status) &&
        // A row with words of its own goes before, by what it says.
        (meant.words === undefined) === (row.words === undefined) &&
        (meant.code ? row.code?.test(code) && (row.param?.test(param ?? "") ?? true) : false),
    );
    expect(rivals.length).toBeLessThanOrEqual(1);
  }
});

test("an example at any endpoint means a suspension where its row does, and nowhere else", () => {
  for (const [at, { suspended = false }] of rows.entries()) {
    const example = examples[at]!;
    const [status, code, message] = example;
    expect([example, isSuspensionAnswer(status, `${code} ${message}`)]).toEqual([example, suspended]);
  }
});

test.each([
  ["spammy_user", "Flagged.", true],
  ["go_http_client_blocked", "It is.", true],
  ["permission_error", "Your account was suspended.", true],
  ["http_forbidden", "Blocked for abuse.", true],
  ["unauthorized", "access_revoked", true],
  ["permission_error", "Not allowed.", false],
  // The words of a message count only where the code is about permissions.
  ["api_error", "Your account was suspended.", false],
  ["invalid_request_error", "The word suspended is not allowed.", false],
  ["", "Your account was suspended.", false],
])("whether a stream says that the account is suspended: %s, %s", (code, message, isSuspended) => {
  expect(isSuspensionEvent(code, message)).toBe(isSuspended);
});

test.each([
  ["overloaded_error", 529],
  ["rate_limit_error", 429],
  ["rate_limit_exceeded", 429],
  ["user_model_rate_limited:pro", 429],
  ["model_overloaded", 429],
  ["quota_exceeded", 402],
  ["insufficient_quota", 402],
  ["content_filter", 422],
  ["invalid_request_error", 400],
  ["invalid_encrypted_content", 400],
  ["context_length_exceeded", 400],
  ["model_not_supported", 400],
  ["authentication_error", 401],
  ["permission_error", 403],
  ["not_found_error", 404],
  ["user_request_timeout", 408],
  ["request_too_large", 413],
  ["timeout_error", 504],
  ["timeout", 504],
  ["api_error", 500],
  ["server_error", 500],
  ["service_unavailable", 503],
  // Our own for a reply that broke, and words that every object knows.
  ["upstream_disconnected", 502],
  ["constructor", 502],
  ["toString", 502],
  ["__proto__", 502],
  ["", 502],
])("an error with status 200 and the code %s gets the status that the code means", (code, status) => {
  expect(statusOf(code)).toBe(status);
  const byRow = rows.filter((row) => row.stream !== undefined && row.code!.test(code)).length;
  const byCode = statuses.filter(([pattern]) => pattern.test(code)).length;
  expect([byRow > 1, byCode > 1, byRow + byCode > 0]).toEqual([false, false, status !== 502]);
});

test("an error with status 200 is found in a body that should have been a stream", () => {
  expect(upstreamErrorIn('{"error":{"code":"model_overloaded","message":"Busy."}}')).toEqual({
    code: "model_overloaded",
    message: "Busy.",
  });
  expect(upstreamErrorIn('{"type":"error","error":{"type":"overloaded_error","message":"Busy."}}')?.code).toBe(
    "overloaded_error",
  );
  expect(upstreamErrorIn('{"error":"Busy."}')?.message).toBe("Busy.");
  for (const body of ['{"error":null,"id":"x"}', "<html>", "", "[]", '{"choices":[]}'])
    expect(upstreamErrorIn(body)).toBeUndefined();
});

test("each row says in a sentence of ours what its error means", () => {
  expect(rows.filter(({ sentence, meaning }) => (sentence === undefined) === (meaning === undefined))).toEqual([]);
});
