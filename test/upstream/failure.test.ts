import { describe, expect, test } from "bun:test";
import { readFailure } from "../../src/upstream/failure";

const now = Date.parse("2026-07-20T10:00:00Z");
const read = (status: number, body: unknown, headers: Record<string, string> = {}) =>
  readFailure(status, new Headers(headers), typeof body === "string" ? body : JSON.stringify(body), now);
const coded = (code: string, message = "Told by the upstream.") => ({ error: { code, message } });

describe("what an answer means, and what may help", () => {
  test.each([
    [401, "unauthorized: token expired\n", "refresh-session", undefined, 503],
    [401, "IDE token expired: unauthorized: token expired\n", "refresh-session", undefined, 503],
    [401, { error: { message: "input item ID does not belong to this connection" } }, "repair", undefined, 400],
    [401, "input item ID does not belong to this connection", "repair", undefined, 400],
    [400, "Input item ID does not belong to this connection", "repair", undefined, 400],
    [400, coded("invalid_encrypted_content"), "repair", undefined, 400],
    [
      400,
      "The encrypted content for item rs_1 could not be verified. Reason: Encrypted content item_id did not match the target item id.",
      "repair",
      undefined,
      400,
    ],
    [
      400,
      "Invalid 'input[2].id': string too long. Expected a string with maximum length 64, but got a string with length 416 instead.",
      "repair",
      undefined,
      400,
    ],
    [400, { error: { code: "string_above_max_length", param: "input[2].id", message: "x" } }, "repair", undefined, 400],
    [400, { error: { code: "string_above_max_length", param: "tools[0].name", message: "x" } }, "none", undefined, 400],
    [500, "does not belong to this connection", "none", undefined, 500],
    [400, coded("model_not_supported"), "next-account", undefined, 404],
    [400, coded("invalid_request_body"), "none", undefined, 400],
    [402, coded("quota_exceeded", "You have no quota"), "next-account", "exhausted", 429],
    [403, "access to this endpoint is forbidden", "refresh-session", undefined, 403],
    [403, { message: "API rate limit exceeded for user ID 1" }, "next-account", "cooling", 429],
    [403, coded("spammy_user", "Your account is flagged."), "none", "failed", 403],
    [413, "Request Entity Too Large\n", "none", undefined, 413],
    [421, "Misdirected Request\n", "relearn-host", undefined, 502],
    [422, "filtered", "none", undefined, 400],
    [429, coded("rate_limited"), "next-account", "cooling", 429],
    [429, coded("user_weekly_rate_limited:pro"), "next-account", "cooling", 429],
    [429, coded("model_overloaded"), "none", undefined, 429],
    [429, coded("quota_exceeded"), "next-account", "exhausted", 429],
    [466, "bad request: the specified API version is no longer supported.", "none", undefined, 502],
    [500, "", "none", undefined, 500],
    [502, "<html>Bad gateway</html>", "none", undefined, 502],
    [503, coded("service_unavailable"), "none", undefined, 503],
    [504, "", "none", undefined, 504],
    [529, { type: "error", error: { type: "overloaded_error", message: "Overloaded" } }, "none", undefined, 529],
  ] as const)("%i %j", (status, body, remedy, state, answer) => {
    const failure = read(status, body);
    expect([failure.remedy, failure.account?.name, failure.error.status]).toEqual([remedy, state, answer]);
  });
});

describe("what a person reads", () => {
  test("the upstream's own words stay as they are", () => {
    const failure = read(400, {
      type: "error",
      error: { type: "invalid_request_error", message: "prompt is too long: 210000 tokens > 200000 maximum" },
    });
    expect(failure.error.message).toBe("prompt is too long: 210000 tokens > 200000 maximum");
    expect(failure.error.details.code).toBe("context_length_exceeded");
  });

  test("a gateway's page is not shown", () =>
    expect(read(502, "<html><h1>evil</h1>").error.message).toBe("GitHub Copilot answered with status 502."));
  test("a retired API version says what to do", () =>
    expect(read(466, "no longer supported").error.message).toContain("upstreamHeaders"));
});

describe("retry-after, in seconds, as a date, and beyond sense", () => {
  test.each([
    ["2", "2", undefined],
    ["Mon, 20 Jul 2026 10:01:00 GMT", "60", "false"],
    ["99999999", "86400", "false"],
    ["Thu, 01 Jan 1970 00:00:00 GMT", "0", undefined],
  ])("%s", (sent, told, retry) => {
    const { headers = {} } = read(429, coded("rate_limited"), { "retry-after": sent }).error.details;
    expect([headers["retry-after"], headers["x-should-retry"]]).toEqual([told, retry]);
  });

  test.each([["abc"], ["-1"]])("%s says nothing", (sent) => {
    expect(read(429, coded("rate_limited"), { "retry-after": sent }).error.details.headers).toEqual({});
  });

  test("it is until when the account rests", () => {
    expect(read(429, coded("rate_limited"), { "retry-after": "90" }).account?.until).toBe(now + 90_000);
  });
});
