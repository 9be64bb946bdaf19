/** Rows: what an upstream's error means, what may help, and its words for a person. */
import { describe, expect, test } from "bun:test";
import { examples } from "../../../src/deploy/documents/failure-examples";
import { isSuspensionAnswer } from "../../../src/people/accounts/suspension";
import {
  readBrokenReply,
  readFailure,
  upstreamErrorIn,
  writtenOfReply,
} from "../../../src/proxy/upstream/copilot/failure";
import { isSuspensionEvent, rowOf, statuses, statusOf } from "../../../src/proxy/upstream/copilot/failure-match";
import { rows } from "../../../src/proxy/upstream/copilot/failure-rows";

const now = Date.parse("2026-07-20T10:00:00Z");
const read = (status: number, body: unknown, headers: Record<string, string> = {}) =>
  readFailure(status, new Headers(headers), typeof body === "string" ? body : JSON.stringify(body), now);
const coded = (code: string, message = "Told by the upstream.") => ({ error: { code, message } });

describe("what an answer means, and what may help", () => {
  test.each([
    [401, "unauthorized: token expired\n", "renew-token", undefined, 503],
    [401, "IDE token expired: unauthorized: token expired\n", "renew-token", undefined, 503],
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
    [403, "access to this endpoint is forbidden", "renew-token-or-host", undefined, 403],
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

describe("codes before words", () => {
  const wordsOfAQuota = "Please retry after 3 seconds, or request a quota increase. Your quota is exceeded.";
  test.each([
    ["user_model_rate_limited", 429, "cooling", "model"],
    ["user_global_rate_limited:pro", 429, "cooling", undefined],
    ["user_weekly_rate_limited:pro", 429, "cooling", undefined],
    ["rate_limited", 429, "cooling", "premium"],
    ["agent_mode_limit_exceeded:free", 429, "cooling", "premium"],
    ["model_overloaded", 429, undefined, undefined],
    ["integration_rate_limited", 429, undefined, undefined],
    ["secondary_rate_limit", 403, "cooling", undefined],
    ["quota_exceeded", 429, "exhausted", undefined],
    ["insufficient_quota", 403, "exhausted", undefined],
  ] as const)("%s with status %i and words about a quota", (code, status, state, scope) => {
    const failure = read(status, coded(code, wordsOfAQuota));
    expect([failure.account?.name, failure.scope]).toEqual([state, scope]);
  });

  test.each([
    // Azure's for a limit per minute, without a code that means anything.
    [
      "Requests have exceeded the call rate limit of your tier. Please retry after 3 seconds, or request a quota increase.",
      "cooling",
    ],
    [
      "Please go to https://aka.ms/oai/quotaincrease if you would like to further increase the default rate limit.",
      "cooling",
    ],
    ["You exceeded your current quota, please check your plan and billing details.", "exhausted"],
    ["The monthly quota of this account is used up.", "exhausted"],
  ])("without a code it is the words: %s", (message, state) => {
    expect(read(429, { error: { message } }).account?.name).toBe(state as "cooling");
  });

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

describe("an error with status 200", () => {
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

  test("an error with status 200 means what an answer with that status would have meant", () => {
    const broken = (code: string) => readBrokenReply({ code, message: "Told." }, new Headers(), now);
    expect(broken("quota_exceeded")).toMatchObject({ remedy: "next-account", account: { name: "exhausted" } });
    expect(broken("invalid_encrypted_content")).toMatchObject({ remedy: "repair", error: { status: 400 } });
    expect(broken("content_filter").error.status).toBe(400);
    expect(broken("overloaded_error")).toMatchObject({ remedy: "none", error: { status: 529, message: "Told." } });
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
});

describe("what a person reads", () => {
  test("a full stop stands between the upstream's words and ours", () => {
    const message = (words: string) => read(403, coded("spammy_user", words)).error.message;
    expect(message("Sorry. Your account was suspended")).toStartWith("Sorry. Your account was suspended. Nothing was");
    expect(message("Your account was suspended.")).toStartWith("Your account was suspended. Nothing was");
    expect(message("Was it suspended?")).toStartWith("Was it suspended? Nothing was");
    expect(read(404, "404 page not found").error.message).toBe("404 page not found");
  });

  test("the hint at free models is in the client's error, but not in the account's state", () => {
    const { error, account } = read(402, coded("quota_exceeded", "You have no quota"));
    expect(error.message).toBe(
      "You have no quota. This account's quota is used up. Models that cost no quota may still work.",
    );
    expect(account?.reason).toBe(
      "GitHub Copilot answered with status 402 (quota_exceeded). This account's quota is used up.",
    );
  });

  test("the upstream's own words stay as they are", () => {
    const failure = read(400, {
      type: "error",
      error: { type: "invalid_request_error", message: "prompt is too long: 210000 tokens > 200000 maximum" },
    });
    expect(failure.error.message).toBe("prompt is too long: 210000 tokens > 200000 maximum");
    expect(failure.error.details.code).toBe("context_length_exceeded");
  });

  test("the page of a gateway is not shown to the client", () =>
    expect(read(502, "<html><h1>evil</h1>").error.message).toBe("GitHub Copilot answered with status 502."));
  test("a retired API version says what to do", () =>
    expect(read(466, "no longer supported").error.message).toContain("upstreamHeaders"));
});

describe("what is written down", () => {
  const written = (status: number, body: unknown) => read(status, body).error.written;

  test("is the status, what the error names, and the sentences of the row, and no word of the upstream's", () => {
    const error = { type: "invalid_request_error", code: "invalid_value", param: "input[2].id", message: "Mortimer." };
    expect(written(400, { error })).toBe(
      "GitHub Copilot answered with status 400 (invalid_request_error, invalid_value, `input[2].id`).",
    );
    expect(written(429, coded("user_model_rate_limited", "Please retry after 60 seconds."))).toBe(
      "GitHub Copilot answered with status 429 (user_model_rate_limited). This limit holds for this model only until 10:01:00 UTC; another one may work at once.",
    );
    expect(written(400, coded("context_length_exceeded"))).toBe(
      "GitHub Copilot answered with status 400 (context_length_exceeded). The prompt does not fit into the model's context window.",
    );
    expect(written(404, "404 page not found")).toBe("GitHub Copilot answered with status 404.");
  });

  test("within a reply has no status, and is dragoman's own sentence where that was no reply", () => {
    const error = { code: "overloaded_error", message: "Mortimer." };
    const ours = { code: "upstream_disconnected", message: "The upstream closed.", isOurs: true } as const;
    expect(readBrokenReply(error, new Headers(), now).error.written).toBe(
      "GitHub Copilot reported an error (overloaded_error).",
    );
    expect([writtenOfReply(error), writtenOfReply(error, "The provider own"), writtenOfReply(ours)]).toEqual([
      "GitHub Copilot reported an error (overloaded_error).",
      "The provider own reported an error (overloaded_error).",
      "The upstream closed.",
    ]);
    expect(readBrokenReply(ours, new Headers(), now).error.written).toBe("The upstream closed.");
  });

  test.each([
    ["tell Dr. Mortimer", undefined],
    ["a.b[0].c_1", "`a.b[0].c_1`"],
    ["a", "`a`"],
    ["0.a", undefined],
    ["a..b", undefined],
    ["a\nb", undefined],
    ["x".repeat(65), undefined],
    [`a${".b".repeat(17)}`, undefined],
    ["tools[0].function.parameters.properties.melanoma", "`tools[0].function.parameters.properties.…`"],
    ["metadata.patient", "`metadata.…`"],
    ["messages.1.content.0.input.patient", "`messages.1.content.0.input.…`"],
  ])("the field %p is named as %p", (param, shown) => {
    const names = shown === undefined ? "" : ` (${shown})`;
    expect(written(400, { error: { message: "No.", param } })).toBe(`GitHub Copilot answered with status 400${names}.`);
  });

  test.each([["x".repeat(65)], ["two words"], ["naïve"], ["1a"]])("the code %p is no name", (code) => {
    expect(written(400, coded(code))).toBe("GitHub Copilot answered with status 400.");
  });

  test("each row says in a sentence of ours what its error means", () => {
    expect(rows.filter(({ sentence, meaning }) => (sentence === undefined) === (meaning === undefined))).toEqual([]);
  });
});

describe("retry-after, in seconds, as a date, and beyond sense", () => {
  test.each([
    ["2", "2", undefined],
    ["Mon, 20 Jul 2026 10:01:00 GMT", "60", "false"],
    ["99999999", "86400", "false"],
    ["Thu, 01 Jan 1970 00:00:00 GMT", "0", undefined],
  ])("a wait is read from retry-after: %s", (sent, told, retry) => {
    const { headers = {} } = read(429, coded("rate_limited"), { "retry-after": sent }).error.details;
    expect([headers["retry-after"], headers["x-should-retry"]]).toEqual([told, retry]);
  });

  test.each([["abc"], ["-1"]])("a retry-after of %s says nothing", (sent) => {
    expect(read(429, coded("rate_limited"), { "retry-after": sent }).error.details.headers).toEqual({});
  });

  test.each([
    [429, "rate_limited", "99999999", 1, true],
    [429, "user_global_rate_limited", "172800", 1, true],
    [429, "user_weekly_rate_limited", "187200", 187_200 / 86_400, false],
    [429, "user_weekly_rate_limited", "99999999", 7, true],
    [402, "quota_exceeded", "99999999", 31, false],
  ])("%i %s for %s s is %d days at most", (status, code, sent, days, doubtful) => {
    const { account } = read(status, coded(code), { "retry-after": sent });
    expect(account).toMatchObject({ until: now + days * 86_400_000, ...(account?.name === "cooling" && { doubtful }) });
  });

  test("it is the end of the account's cooldown", () => {
    expect(read(429, coded("rate_limited"), { "retry-after": "90" }).account).toMatchObject({ until: now + 90_000 });
  });

  test("in milliseconds, which go before, and in parts of a second: never sooner than stated", () => {
    const told = (headers: Record<string, string>) =>
      read(429, coded("rate_limited"), headers).error.details.headers?.["retry-after"];
    expect(told({ "retry-after": "1.5" })).toBe("2");
    expect(told({ "retry-after-ms": "1200", "retry-after": "9" })).toBe("2");
    expect(told({ "retry-after-ms": "soon", "retry-after": "9" })).toBe("9");
  });
});

describe("a wait that only the text states", () => {
  test.each([
    ["Please retry after 2733 seconds.", "2733"],
    ["Please try again in 5 minutes.", "300"],
    ["You may try again in 2 hours", "7200"],
    ["Please try again in 1h 30m.", "5400"],
    ["Please try again in 6m0s. Visit us.", "360"],
    ["Please try again in 1.5s.", "2"],
    ["Please try again in 120ms.", "1"],
    ["Try again in 1 hour and 10 minutes.", "4200"],
    ["Retry after 40 days.", "86400"],
  ])("a wait is read from the text alone: %s", (message, seconds) => {
    const { error, account } = read(429, coded("rate_limited", message));
    expect(error.details.headers?.["retry-after"]).toBe(seconds);
    expect(account).toMatchObject({ until: now + Number(seconds) * 1000 });
  });

  test.each([
    ["Please try again in a moment."],
    ["retry after 30"],
    ["Try again in 5 monkeys."],
    ["We retry 5 minutes."],
  ])("a text of %s says nothing of a wait", (message) => {
    expect(read(429, coded("rate_limited", message)).error.details.headers).toEqual({});
  });

  test("a header goes before it, and an error that no wait mends has none", () => {
    const message = "Please retry after 2733 seconds.";
    const { headers } = read(429, coded("rate_limited", message), { "retry-after": "9" }).error.details;
    expect(headers?.["retry-after"]).toBe("9");
    expect(read(400, coded("invalid_request_body", message)).error.details.headers).toEqual({});
    const broken = readBrokenReply({ code: "user_global_rate_limited:pro", message }, new Headers(), now);
    expect(broken).toMatchObject({ account: { name: "cooling", until: now + 2_733_000 } });
  });
});

test("an empty 403 is a right that is missing, and a page is not", () => {
  expect(read(403, "").denies).toBe("right");
  expect(read(403, "<html>Blocked by the company</html>").denies).toBeUndefined();
});
