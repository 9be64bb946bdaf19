/** Reads untrusted JSON, and writes the forms of this upstream's errors. */

export type Json = Record<string, unknown>;

export const record = (value: unknown): Json =>
  value !== null && typeof value === "object" && !Array.isArray(value) ? (value as Json) : {};
export const list = (value: unknown): unknown[] => (Array.isArray(value) ? value : []);
export const records = (value: unknown): Json[] => list(value).map(record);
export const string = (value: unknown): string => (typeof value === "string" ? value : "");
export const number = (value: unknown): number | undefined => (typeof value === "number" ? value : undefined);
/** The texts of a message's content, whether it is one text or a list of parts. */
export const textsOf = (content: unknown): string[] =>
  [content].flat().map((part) => string(part) || string(record(part).text));
export const textOf = (content: unknown): string => textsOf(content).filter(Boolean).join("\n");

/** The entry of a table for an untrusted key. */
export const entry = <T>(table: Record<string, T>, key: string): T | undefined =>
  Object.hasOwn(table, key) ? table[key] : undefined;

/** The JSON in a text; the text itself if it has none. */
export function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

/** A server-sent event that says its type twice. */
export const eventText = (type: string, fields: Json): string =>
  `event: ${type}\ndata: ${JSON.stringify({ type, ...fields })}\n\n`;

/** An error answer. Thrown anywhere below the router, which sends it. */
export class Refusal extends Error {
  constructor(
    readonly status: number,
    readonly body: string,
    readonly headers: Record<string, string>,
  ) {
    super(`${status} ${body.trim()}`);
  }

  response(): Response {
    return new Response(this.body, { status: this.status, headers: this.headers });
  }
}

const plainText = { "content-type": "text/plain; charset=utf-8" };

/** Plain text with a newline: `Misdirected Request\n`. */
export const plain = (status: number, words: string, headers: Record<string, string> = {}) =>
  new Refusal(status, `${words}\n`, { ...plainText, ...headers });

/** The model host's own JSON, labelled text/plain and with a newline: clients must parse it whatever the label. */
export const refusal = (status: number, code: string, message: string, extra: Json = {}, headers = {}) =>
  new Refusal(status, `${JSON.stringify({ error: { message, code, ...extra } })}\n`, { ...plainText, ...headers });

/** An error of the models' own API, for chat and responses. */
export const invalid = (code: string, message: string, param: string | null = null) =>
  refusal(400, code, message, { param, type: "invalid_request_error" });

/** An error of Anthropic's API, for messages. */
export const anthropicInvalid = (message: string, status = 400, type = "invalid_request_error") =>
  new Refusal(
    status,
    JSON.stringify({ type: "error", error: { type, message }, request_id: `req_${randomId("vrtx_011", 20)}` }),
    { "content-type": "application/json" },
  );

/** GitHub's REST errors. */
export const githubError = (status: number, message: string) =>
  new Refusal(
    status,
    JSON.stringify({ message, documentation_url: "https://docs.github.com/rest", status: String(status) }),
    { "content-type": "application/json; charset=utf-8" },
  );

const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

export function randomId(prefix: string, length: number): string {
  let id = prefix;
  for (const byte of crypto.getRandomValues(new Uint8Array(length))) id += alphabet[byte % alphabet.length];
  return id;
}

const ids = new Set(["id", "call_id", "tool_call_id", "tool_use_id"]);

/** The characters of everything that a tokenizer would see, of which four are a token. Images count as 4000, opaque strings as 0. */
export function weigh(value: unknown, key = ""): number {
  if (typeof value === "string") {
    // Ids are random: the same request must always weigh the same.
    if (ids.has(key)) return value.length;
    if (key === "encrypted_content" || key === "signature" || key === "reasoning_opaque") return 0;
    return value.startsWith("data:") || (key === "data" && value.length > 4000) ? 4000 : value.length;
  }
  if (Array.isArray(value)) return value.reduce<number>((sum, item) => sum + weigh(item), 0);
  if (value === null || typeof value !== "object") return 0;
  let sum = 0;
  for (const name in value) sum += weigh((value as Json)[name], name);
  return sum;
}
