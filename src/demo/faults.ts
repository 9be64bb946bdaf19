/**
 * Failures on request. `[demo: NAME argument]` in the newest text of a person makes the upstream fail in a given way, so that
 * every failure can be produced. `[demo: 429 30 once]` happens the first time only,
 * `[demo: 429 @work-demo]` on that account only. A text may have several directives.
 */
import type { DemoState } from "./state";
import { anthropicInvalid, invalid, plain, Refusal, refusal } from "./wire";

/** The effects of the directives of one prompt. */
export interface Effects {
  /** The answer to send instead. */
  instead?: Refusal;
  /** Seconds before the headers. */
  slowHeaders?: number;
  /** What happens after `after` (3) content events. */
  midway?: "reset" | "end" | "silence" | "error" | "failed" | "broken" | "ping";
  after?: number;
  /** Seconds of `silence`. */
  silence?: number;
  noFinish?: boolean;
  noDone?: boolean;
  empty?: boolean;
  firstError?: boolean;
  afterDone?: boolean;
  crlf?: boolean;
  /** Bytes per packet. */
  chop?: number;
  /** Pieces of text. */
  long?: number;
  refuse?: boolean;
  redacted?: boolean;
  /** Text that explains the directives. */
  help?: string;
}

interface Directive {
  name: string;
  /** The meaning of the argument `N`, if there is one. */
  argument?: string;
  what: string;
}

interface Row extends Directive {
  give(argument: number | undefined, path: string): Partial<Effects>;
}

/**
 * Answers instead of the scripted one. The name starts with the status, or it is 200. A row:
 * name | form | code (@param) | message | retry-after in seconds | description
 */
const answers = `
400-model | openai | model_not_supported @model | The requested model is not supported. | | the model is unknown or not allowed
400-endpoint-model | openai | model_not_supported @model | model "demo" is not accessible via the {path} endpoint | | the same, with the code of another error
400-integrator | openai | model_not_available_for_integrator @model | The requested model is not available for integrator "vscode-chat". Available models: [gpt-5-mini raptor-mini]. Verify the correct Copilot-Integration-Id header is being sent. | | the model is not offered to this client
400-no-endpoints | json | no_available_model_endpoints | no endpoints available for this model under your current plan and policies | | the plan or a policy excludes the model
400-endpoint | json | unsupported_api_for_model | model "demo" is not accessible via the {path} endpoint | | the model is not offered at this endpoint
400-long | long | model_max_prompt_tokens_exceeded | prompt token count of 130000 exceeds the limit of 128000 | | the prompt is too long
400-window | window | | Request body is too large for model context window | | the prompt is too long, in newer words
400-bad | json | bad_request | prompt token count of 130000 exceeds the limit of 128000 | | the same with a code that says nothing
400-field | anthropic | invalid_request_error | context_management: Extra inputs are not permitted | | a field is refused
400-body | json | invalid_request_body | invalid request body | | the body is refused
400-plain | plain | | Bad Request | | an opaque refusal
400-off-topic | json | off_topic | off_topic: the question is not about programming | | the intent filter
400-previous | openai | previous_response_not_found @previous_response_id | Previous response with id 'resp_demo' not found. | | nothing is stored upstream
400-encrypted | openai | invalid_encrypted_content | The encrypted content could not be decrypted or parsed. | | replayed reasoning of someone else
401-expired | plain | | unauthorized: token expired | | the Copilot token has expired
401-pat | plain | | unauthorized: Personal Access Token does not have Copilot Requests permission | | a token without the permission
400-pat | plain | | Personal Access Tokens are not supported for this endpoint | | a fine-grained personal token
402 | json | quota_exceeded | You have no quota | 3600 | the quota is used up
402-free | json | free_quota_exceeded | You have no quota | | the free plan is used up
402-session | json | session_quota_exceeded | You have reached your session limit | | the limit of a few hours
402-spend | json | additional_spend_limit_reached | You have reached your additional usage limit | | the budget for more is spent
403 | plain | | unauthorized: not authorized to use this Copilot feature | | no right to use this
403-empty | raw | | | | the same without a word
404 | plain | | 404 page not found | | unknown path or model
413-prompt | bare | | failed to parse request | | the prompt is far too long
413 | plain | | Request Entity Too Large | | the body is too large
421 | plain | | Misdirected Request | | the host of another plan
422 | plain | | Sorry, the response was filtered by the Responsible AI Service. | | the content filter
429 | json | rate_limited | Too many requests. Please wait. | 5 | too many requests
429-silent | json | rate_limited | Too many requests. Please wait. | | the same, without saying how long
429-model | json | user_model_rate_limited:pro | You have been rate-limited for this model. | 60 | this account with this model
429-global | json | user_global_rate_limited:pro | Sorry, you have been rate-limited. Please wait a moment before trying again. | 60 | this account with every model
429-session | json | user_global_rate_limited:pro | Sorry, you've exceeded your 5 hour session limits. Please retry after 2733 seconds. | | the limit of five hours, with the wait in the text only
429-quota | plain | quota_exceeded | quota exceeded | | the quota is used up, in plain text
429-weekly | json | user_weekly_rate_limited | Sorry, you've exceeded your weekly rate limit. Please review our Terms of Service. | 187200 | the weekly limit
429-overloaded | json | model_overloaded | The model is overloaded. | 10 | this model for everybody
466 | plain | | bad request: the specified API version is no longer supported. You may need to update your client to a newer version. | | the API version is too old
500 | json | internal_error | Internal server error | | an internal error
502 | raw | | | | a bad gateway, without a word
502-html | html | | 502 Bad Gateway | | a bad gateway's page
503 | plain | | upstream provider rate limit | | the model's provider is busy
504 | html | | 504 Gateway Time-out | | the model's provider is silent
529 | anthropic | overloaded_error | Overloaded | | the model is overloaded, in Anthropic's words
html | html | | Sign in to the network | | success, but a page`;

type Form = (status: number, code: string, words: string, headers: Record<string, string>, path: string) => Refusal;

const forms: Record<string, Form> = {
  json: (status, code, words, headers) => refusal(status, code, words, {}, headers),
  openai: (status, code, words, headers) => {
    const [name = "", param = null] = code.split(" @");
    return refusal(status, name, words, { param, type: "invalid_request_error" }, headers);
  },
  anthropic: (status, type, words) => anthropicInvalid(words, status, type),
  long: (_status, code, words, _headers, path) =>
    path === "/v1/messages"
      ? anthropicInvalid("prompt is too long: 210000 tokens > 200000 maximum")
      : invalid(code, words),
  window: (_status, _code, words, _headers, path) =>
    path === "/v1/messages"
      ? anthropicInvalid(words)
      : invalid("invalid_request_error", "Your input exceeds the context window of this model."),
  plain: (status, _code, words, headers) => plain(status, words, headers),
  html: (status, _code, words) =>
    new Refusal(status, `<html>\r\n<head><title>${words}</title></head>\r\n<body>${words}</body>\r\n</html>\r\n`, {
      "content-type": "text/html",
    }),
  bare: (status, code, message) =>
    new Refusal(status, JSON.stringify({ message, code }), { "content-type": "application/json" }),
  raw: (status, _code, words) => new Refusal(status, words, { "content-type": "text/plain; charset=utf-8" }),
};

function answerRow(line: string): Row {
  const [name = "", form = "", code = "", words = "", retry = "", what = ""] = line
    .split("|")
    .map((cell) => cell.trim());
  const status = Number.parseInt(name, 10) || 200;
  return {
    name,
    what: `${status}: ${what}`,
    ...(retry && { argument: "seconds to wait" }),
    give(argument, path) {
      const headers = {
        ...(retry && { "retry-after": String(argument ?? retry) }),
        ...(status === 429 && { "x-ratelimit-exceeded": code }),
      };
      return { instead: forms[form]!(status, code, words.replace("{path}", path), headers, path) };
    },
  };
}

/** Changes to the scripted answer: name, description, effect, meaning of the argument. */
const changes: [name: string, what: string, give: (argument?: number) => Partial<Effects>, argument?: string][] = [
  ["slow-headers", "silence before the headers", (n = 5) => ({ slowHeaders: n }), "seconds"],
  ["reset", "the connection is reset before the body", () => ({ midway: "reset", after: 0 })],
  ["cut", "the connection is reset midway", (n = 3) => ({ midway: "reset", after: n }), "events before it"],
  ["end", "a clean end midway", (n = 3) => ({ midway: "end", after: n }), "events before it"],
  ["silence", "silence midway", (n = 5) => ({ midway: "silence", silence: n }), "seconds"],
  ["error-event", "an error event midway", () => ({ midway: "error" })],
  ["failed", "response.failed midway; in other dialects as error-event", () => ({ midway: "failed" })],
  ["bad-json", "one line of broken JSON midway", () => ({ midway: "broken" })],
  ["first-error", "200, then an error as the first event", () => ({ firstError: true })],
  ["empty", "200 without a single event", () => ({ empty: true })],
  ["ping", "a line that means nothing midway", () => ({ midway: "ping" })],
  ["no-finish", "no finish reason; in responses no last output_item.done", () => ({ noFinish: true })],
  ["no-done", "the last event is missing", () => ({ noDone: true })],
  ["after-done", "more bytes after the last event", () => ({ afterDone: true })],
  ["crlf", "lines end with CR LF", () => ({ crlf: true })],
  ["chop", "packets of a few bytes that end anywhere", (n = 7) => ({ chop: Math.max(1, n) }), "bytes"],
  ["long", "a long answer", (n = 200) => ({ long: n }), "pieces of text"],
  ["refuse", "the model refuses", () => ({ refuse: true })],
  ["redacted", "thinking that may not be shown", () => ({ redacted: true })],
  ["help", "this list", () => ({ help: directivesHelp() })],
];

const rows: Row[] = [
  ...answers.trim().split("\n").map(answerRow),
  ...changes.map(([name, what, give, argument]) => ({ name, what, give, argument })),
];

/** Every directive, in the order of the explanation. */
export const directives: readonly Directive[] = rows.map(({ name, argument, what }) => ({ name, argument, what }));

const directivesHelp = (): string =>
  ["DEMO. Write one of these into a prompt:"]
    .concat(
      directives.map(
        ({ name, argument, what }) =>
          `[demo: ${name}${argument ? " N" : ""}] ${what}${argument ? `; N: ${argument}` : ""}`,
      ),
    )
    .join("\n");

/** Reads the directives in `prompt` that apply to this account and are not used up. */
export function readEffects(demo: DemoState, prompt: string, login: string, path: string): Effects {
  const effects: Effects = {};
  for (const [written, text = ""] of prompt.matchAll(/\[demo:\s*([^\]]+)\]/gi)) {
    const [name = "", ...words] = text.trim().split(/\s+/);
    const addressee = words.find((word) => word.startsWith("@"))?.slice(1);
    if (addressee && addressee !== login) continue;
    if (words.includes("once")) {
      const mark = `${written} ${prompt}`;
      if (demo.spent.has(mark)) continue;
      demo.spent.add(mark);
    }
    const row = rows.find((candidate) => candidate.name === name.toLowerCase());
    const argument = words.map(Number).find((value) => !Number.isNaN(value));
    if (row) Object.assign(effects, row.give(argument, path));
    else effects.help = `There is no directive “${name}”.\n${directivesHelp()}`;
  }
  return effects;
}
