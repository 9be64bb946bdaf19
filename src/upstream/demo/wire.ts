/** Reading untrusted JSON, and the error forms this upstream answers with. */

export type Json = Record<string, unknown>;

export const record = (value: unknown): Json =>
  value !== null && typeof value === "object" && !Array.isArray(value) ? (value as Json) : {};
export const list = (value: unknown): unknown[] => (Array.isArray(value) ? value : []);
export const records = (value: unknown): Json[] => list(value).map(record);
export const string = (value: unknown): string => (typeof value === "string" ? value : "");
export const number = (value: unknown): number | undefined => (typeof value === "number" ? value : undefined);

/** What a table holds under a key that came from outside. */
export const entry = <T>(table: Record<string, T>, key: string): T | undefined =>
  Object.hasOwn(table, key) ? table[key] : undefined;

/** An answer that refuses: thrown anywhere below the router, spoken once there. */
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

/** Plain words and a newline: `Misdirected Request\n`. */
export const plain = (status: number, words: string, headers: Record<string, string> = {}) =>
  new Refusal(status, `${words}\n`, { ...plainText, ...headers });

/** The model host's own JSON. It is labelled text/plain and ends with a newline: clients must parse, not look at the label. */
export const refusal = (status: number, code: string, message: string, extra: Json = {}, headers = {}) =>
  new Refusal(status, `${JSON.stringify({ error: { message, code, ...extra } })}\n`, { ...plainText, ...headers });

/** A refusal of the models' own API, for chat and responses. */
export const invalid = (code: string, message: string, param: string | null = null) =>
  refusal(400, code, message, { param, type: "invalid_request_error" });

/** A refusal of Anthropic's API, for messages. */
export const anthropicInvalid = (message: string, status = 400, type = "invalid_request_error") =>
  new Refusal(
    status,
    JSON.stringify({ type: "error", error: { type, message }, request_id: `req_${randomId("vrtx_011", 20)}` }),
    { "content-type": "application/json" },
  );

/** GitHub's REST errors. */
export const githubError = (status: number, message: string, extra: Json = {}) =>
  new Refusal(
    status,
    JSON.stringify({ message, documentation_url: "https://docs.github.com/rest", status: String(status), ...extra }),
    { "content-type": "application/json; charset=utf-8" },
  );

const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

export function randomId(prefix: string, length: number): string {
  let id = prefix;
  for (const byte of crypto.getRandomValues(new Uint8Array(length))) id += alphabet[byte % alphabet.length];
  return id;
}

/** Everything a tokenizer would see, in characters: pictures count as 4000, opaque proofs as nothing. */
export function weigh(value: unknown, key = ""): number {
  if (typeof value === "string") {
    if (key === "encrypted_content" || key === "signature" || key === "reasoning_opaque") return 0;
    return value.startsWith("data:") || (key === "data" && value.length > 4000) ? 4000 : value.length;
  }
  if (Array.isArray(value)) return value.reduce<number>((sum, item) => sum + weigh(item), 0);
  if (value === null || typeof value !== "object") return 0;
  let sum = 0;
  for (const name in value) sum += weigh((value as Json)[name], name);
  return sum;
}
