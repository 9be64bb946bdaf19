/**
 * The Responses API over a WebSocket: a frame of JSON for each request and each event. Sources: OpenAI's guide “WebSocket
 * mode”, and Codex's client (codex-rs/codex-api/src/endpoint/responses_websocket.rs).
 */
import { ProxyError } from "../../lib/errors";
import { isObject, parseJson } from "../../lib/json";
import { editMembers, memberText } from "../../lib/net/json/json-edit";
import { jsonOf, type SseFrame } from "../../lib/net/stream/sse";
import type { JsonObject } from "../hub/conversation";
import { errorIn } from "./errors";

/** Bytes of a conversation; a longer one is forgotten, because no request may be longer. */
const maxItems = 32 * 1024 * 1024;

/** The headers of a failed answer that a client can use. */
const passedHeaders = /^(?:retry-after|x-)/;

/** A message as a request over HTTP. */
interface SocketRequest {
  body: Buffer;
  /** The names of the fixups. */
  fixups: readonly string[];
}

/** One socket's conversation: a request may continue the last response, and then has only the new items. */
export class ResponseChain {
  #last: { id: string; items: Buffer } | undefined;
  /** The items of the present request, and those of its response by their index. */
  #input: Buffer | undefined;
  readonly #output = new Map<number, string>();

  /** Bytes that are kept for the next request. */
  get size(): number {
    return this.#last?.items.length ?? 0;
  }

  forget(): void {
    this.#last = undefined;
  }

  /**
   * The same request over HTTP; undefined for a message that needs no answer. What cannot be read is returned as it is,
   * and so is an id that is not known: over HTTP both are answered with the right error.
   * @throws ProxyError `invalid_request` for a message that is not a request.
   */
  read(message: string): SocketRequest | undefined {
    this.#input = undefined;
    this.#output.clear();
    const request = parseJson(message);
    if (!isObject(request)) return unchanged(message);
    if (request.type === "response.processed") return undefined;
    if (request.type !== "response.create")
      throw invalid(
        "type",
        "A message must have the type `response.create`, with the body of POST /v1/responses beside it.",
      );
    if (request.stream_id != null)
      throw invalid("stream_id", "`stream_id` is not supported: open a WebSocket for each stream.");
    const wrapping = request.generate === false ? ["type"] : ["type", "generate"];
    const items = itemsOf(memberText(message, "input") ?? "[]");
    const isKnown = this.#last !== undefined && request.previous_response_id === this.#last.id;
    if (!isKnown || items === undefined) {
      if (items !== undefined && request.previous_response_id == null) this.#input = Buffer.from(items);
      return unchanged(editMembers(message, { stream: true }, wrapping));
    }
    this.#input = joined([this.#last!.items, Buffer.from(items)]);
    const others = editMembers(message, { stream: true }, [...wrapping, "previous_response_id", "input"]);
    const body = Buffer.concat([Buffer.from(`${others.slice(0, -1)},"input":[`), this.#input, Buffer.from("]}")]);
    return { body, fixups: ["continued"] };
  }

  /** The message for an event of the response; undefined for what is not an event. */
  write(frame: SseFrame): string | undefined {
    const { data } = frame;
    if (data === undefined || data === "[DONE]") return undefined;
    const type = frame.event ?? typeIn(jsonOf(frame));
    if (type === "response.output_item.done") this.#keepItem(jsonOf(frame));
    else if (type === "response.completed" || type === "response.incomplete") this.#keepResponse(jsonOf(frame));
    else if (type === "error") return brokenMessage(jsonOf(frame));
    return data;
  }

  #keepItem(event: unknown): void {
    if (!isObject(event) || !isObject(event.item)) return;
    const index = typeof event.output_index === "number" ? event.output_index : this.#output.size;
    this.#output.set(index, JSON.stringify(event.item));
  }

  #keepResponse(event: unknown): void {
    const response = isObject(event) && isObject(event.response) ? event.response : {};
    if (this.#input === undefined || typeof response.id !== "string") return;
    const shown = [...this.#output].sort(([one], [other]) => one - other).map(([, item]) => item);
    const listed = Array.isArray(response.output) ? response.output.map((item) => JSON.stringify(item)) : [];
    const items = joined([this.#input, Buffer.from((shown.length > 0 ? shown : listed).join(","))]);
    this.#last = items.length > maxItems ? undefined : { id: response.id, items };
    this.#input = undefined;
  }
}

/** The message for a request that was answered with an error. */
export function failureMessage(status: number, body: unknown, headers: Headers): string {
  const passed = [...headers].filter(([name]) => passedHeaders.test(name));
  const error = isObject(body) && isObject(body.error) ? body.error : null;
  return JSON.stringify({ type: "error", status, error, headers: Object.fromEntries(passed) });
}

/** The error of a socket that has become too old, or whose process stops: clients connect again and send everything. */
export const socketEnded = new ProxyError(
  "invalid_request",
  "This WebSocket has ended: open a new one and send the whole input.",
  { code: "websocket_connection_limit_reached" },
);

const typeIn = (event: unknown): unknown => (isObject(event) ? event.type : undefined);

/** An error in place of a response. Without a status, Codex would ignore it. */
function brokenMessage(event: unknown): string {
  const json: JsonObject = isObject(event) ? event : {};
  const error = { type: "upstream_error", param: null, ...errorIn(json) };
  return JSON.stringify({ type: "error", status: 502, error, sequence_number: json.sequence_number });
}

const unchanged = (body: string): SocketRequest => ({ body: Buffer.from(body), fixups: [] });

/** The items of an input as the inside of a JSON array; undefined for an input that is none. */
function itemsOf(input: string): string | undefined {
  if (input.startsWith("[")) return input.slice(1, -1).trim();
  return input.startsWith('"') ? `{"type":"message","role":"user","content":${input}}` : undefined;
}

function joined([before, after]: [Buffer, Buffer]): Buffer {
  if (before.length === 0) return after;
  return after.length === 0 ? before : Buffer.concat([before, Buffer.from(","), after]);
}

const invalid = (param: string, message: string) => new ProxyError("invalid_request", message, { param });
