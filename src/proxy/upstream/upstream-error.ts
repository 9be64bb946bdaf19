/** An upstream's error. Its words are for the client and nobody else; what it names for programs may be written down. */
import type { ReplyFailure } from "../../dialects/hub/reply";
import { isObject, parseJson } from "../../lib/json";
import { isPlainName } from "../../lib/json-shape";

/** `code` is its type if it has no code, and empty if it has neither. */
export interface UpstreamError extends ReplyFailure {
  errorType?: string;
  param?: string;
  /** The body is a page for a browser, as something on the way to the upstream answers it. Its words are not read. */
  isPage?: boolean;
}

/**
 * The error in a body of any form, whatever its content type. FastAPI has it as `detail`, a text or a list (vLLM, LiteLLM),
 * Cloudflare in `errors`, and Google's API for OpenAI's clients in a list.
 */
export function readErrorBody(body: string): UpstreamError {
  const parsed = parseJson(body);
  const json: unknown = Array.isArray(parsed) && isObject(parsed[0]) ? parsed[0] : parsed;
  if (!isObject(json)) {
    const isPage = /^\s*</.test(body);
    return { message: isPage ? "" : body.trim(), code: "", isPage };
  }
  const error = isObject(json.error) ? json.error : json;
  const text = (value: unknown) => (typeof value === "string" ? value : "");
  const type = text(error.type) === "error" ? "" : text(error.type);
  const [detail] = [json.detail ?? json.errors].flat();
  const told = isObject(detail) ? text(detail.msg) || text(detail.message) : text(detail);
  return {
    message: (text(error.message) || text(json.error) || told).trim(),
    code: text(error.code) || type,
    errorType: type || undefined,
    param: text(error.param) || undefined,
  };
}

/**
 * What is written down of an upstream's error, in place of its words:
 * ``GitHub Copilot answered with status 400 (invalid_request_error, invalid_value, `input[2].id`).``
 * @param from `who` begins a sentence. `status` is missing for an error within a reply.
 */
export function writtenOf(error: UpstreamError, { who, status }: { who: string; status?: number }): string {
  const names = identifiersIn(error);
  const what = status === undefined ? "reported an error" : `answered with status ${status}`;
  return `${who} ${what}${names.length === 0 ? "" : ` (${names.join(", ")})`}.`;
}

/**
 * What an error names for programs, as far as it cannot be anybody's text. Of type and code: a letter or `_`, then at most 63
 * letters, digits and `_.:-`. Of the field: names of at most 64 letters, digits and `_`, with dots between and indexes, at
 * most 17 in all; it ends where the client chose the names, as in the properties of a schema.
 */
function identifiersIn({ errorType, code, param }: UpstreamError): string[] {
  const names = [...new Set([errorType ?? "", code])].filter(isPlainName);
  return param !== undefined && fieldPath.test(param) ? [...names, `\`${wirePath(param)}\``] : names;
}

const fieldPath = /^[a-z_]\w{0,63}(?:\.\w{1,64}|\[\d{1,6}\]){0,16}$/i;

/** Members whose own members have names that the client chose. */
const namedByClient: ReadonlySet<string> = new Set(
  "properties definitions patternProperties arguments metadata logit_bias".split(" "),
);

/** The path as far as the wire format names it. */
function wirePath(path: string): string {
  const segments = path.split(".");
  const last = segments.findIndex((name, at) => namedByClient.has(name) || (name === "input" && at > 0));
  return last < 0 || last === segments.length - 1 ? path : `${segments.slice(0, last + 1).join(".")}.…`;
}
