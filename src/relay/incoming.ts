/** Reads the client's request once: its bytes, its JSON, and what routing needs to know. */
import { isUtf8 } from "node:buffer";
import type { ClientCodec } from "../dialects/codecs";
import type { JsonObject } from "../dialects/hub/conversation";
import { ProxyError } from "../errors";
import { isObject, parseJson, parseWithSource, SourceNumber } from "../json";
import { limitBytes } from "../net/in/byte-limit";
import { decompress, encodingOf } from "../net/in/decompress";
import type { HeldBytes } from "../net/in/held-bytes";
import { editMembers } from "../net/json/json-edit";
import { fillExcept, type MarkPlace, type Skeleton, skeletonOf } from "../net/json/json-skeleton";
import { longestModelName } from "../upstream/models/model-name";
import { type Initiator, initiatorOf } from "./initiator";

export interface Incoming {
  /** As sent, without a byte order mark. The text is not kept: for a large prompt it would take as much memory again, or twice. */
  bytes: Uint8Array;
  /** Its numbers keep the digits with which they were written. In a large one long texts may be marks of the skeleton. */
  body: JsonObject;
  /** Missing where `body` has no marks. */
  skeleton?: Skeleton;
  /** The model id as the client wrote it. */
  model: string;
  stream: boolean;
}

/** Bytes. */
export const bodyLimit = 32 * 1024 * 1024;
/** Levels of nested arrays and objects. */
const maxDepth = 256;
/** Bytes. In a smaller body long texts are no marks. */
const minSkeleton = 64 * 1024;

/** Members of a request that a dialect has in its address instead of its body. They are added to the body. */
export interface AddressMembers extends JsonObject {
  model: string;
}

/**
 * @param longTexts Where texts of a large body may be marks; nowhere if it is not given.
 * @param held Whose memory the body takes.
 * @throws ProxyError `invalid_request`, `too_large`, `unsupported_media`, `rate_limit`: each names what is wrong and where.
 */
export async function readIncoming(
  request: Request,
  longTexts?: MarkPlace,
  inAddress?: AddressMembers,
  held?: HeldBytes,
): Promise<Incoming> {
  const bytes = await readUtf8(request, bodyLimit, held);
  const skeleton = longTexts && bytes.length > minSkeleton ? skeletonOf(bytes) : undefined;
  const sent = bodyObject(parseWithSource(skeleton?.text ?? bodyText(bytes)));
  if (longTexts && skeleton) fillExcept(sent, skeleton, longTexts);
  const body = inAddress ? { ...sent, ...inAddress } : sent;
  refuseOtherModel(body);
  if (typeof body.model !== "string" || body.model === "")
    throw new ProxyError("invalid_request", "`model` must be a model id; GET /v1/models lists them.", {
      param: "model",
    });
  if (body.model.length > longestModelName)
    throw new ProxyError(
      "invalid_request",
      `\`model\` has ${body.model.length} characters, and no model's name has more than ${longestModelName}; GET /v1/models lists them.`,
      { param: "model" },
    );
  if (body.stream != null && typeof body.stream !== "boolean")
    throw new ProxyError("invalid_request", "`stream` must be true or false.", { param: "stream" });
  return { bytes, body, ...(skeleton ? { skeleton } : {}), model: body.model, stream: body.stream === true };
}

/**
 * The request's body as a JSON object, whatever content type it claims, decompressed where it is compressed.
 * @param max Bytes, compressed or plain.
 */
export async function readJson(
  request: Request,
  max = bodyLimit,
  held?: HeldBytes,
): Promise<Pick<Incoming, "bytes" | "body">> {
  const bytes = await readUtf8(request, max, held);
  return { bytes, body: bodyObject(parseJson(bodyText(bytes))) };
}

/** The request's body without a byte order mark. */
async function readUtf8(request: Request, max: number, held: HeldBytes | undefined): Promise<Uint8Array> {
  refuseCharsets(request.headers);
  const sent = await readBytes(request, max, held);
  // No JSON begins with a byte order mark.
  const bytes = sent[0] === 0xef && sent[1] === 0xbb && sent[2] === 0xbf ? sent.subarray(3) : sent;
  if (!isUtf8(bytes)) throw new ProxyError("invalid_request", "The request body is not valid UTF-8.");
  return bytes;
}

/** @param body Undefined for text that is not JSON. */
function bodyObject(body: unknown): JsonObject {
  if (body === undefined) throw new ProxyError("invalid_request", "The request body is not valid JSON.");
  if (!isObject(body)) throw new ProxyError("invalid_request", "The request body must be a JSON object.");
  if (isDeeperThan(body, maxDepth))
    throw new ProxyError("invalid_request", `The request body is nested too deep: at most ${maxDepth} levels.`);
  return body;
}

/**
 * Upstreams written in Go read `Model` as `model`: it would be another model than the one that was checked and is recorded.
 * @throws ProxyError `invalid_request`
 */
function refuseOtherModel(body: JsonObject): void {
  for (const name in body)
    if (name.length === 5 && name !== "model" && name.toLowerCase() === "model")
      throw new ProxyError("invalid_request", `\`${name}\` is no field of a request: write \`model\`.`, {
        param: name,
      });
}

/** The client's JSON with some top-level members set and some removed; every other byte is as it was sent. */
export const editIncoming = (
  { bytes, skeleton }: Incoming,
  set: JsonObject,
  remove: readonly string[],
): string | Uint8Array =>
  skeleton ? skeleton.fill(editMembers(skeleton.text, set, remove)) : editMembers(bodyText(bytes), set, remove);

/** The body without marks. */
export function wholeBody({ bytes, body, skeleton }: Incoming): JsonObject {
  const whole = skeleton ? parseWithSource(bodyText(bytes)) : body;
  return isObject(whole) ? whole : body;
}

/** What the upstream's headers say of a conversation; they are needed in passthrough too. */
export interface Facts extends Initiator {
  /** It contains an image, in a tool result or elsewhere. */
  vision: boolean;
}

export function readFacts(
  codec: ClientCodec,
  { body, skeleton }: Pick<Incoming, "body" | "skeleton">,
  headers: Headers,
): Facts {
  const overview = codec.overview(body);
  const { initiator, reason } = initiatorOf(overview, headers, skeleton?.whole);
  return { initiator, reason, vision: overview.image };
}

function refuseCharsets(headers: Headers): void {
  const charset = /charset\s*=\s*"?([\w-]+)/i.exec(headers.get("content-type") ?? "")?.[1]?.toLowerCase();
  if (charset !== undefined && charset !== "utf-8" && charset !== "utf8" && charset !== "us-ascii")
    throw new ProxyError("unsupported_media", `The request body must be UTF-8, not ${charset}.`);
}

async function readBytes(request: Request, max: number, held?: HeldBytes): Promise<Uint8Array> {
  const tooLarge = () =>
    new ProxyError("too_large", `The request body is over ${max / 1024 / 1024} MiB.`, {
      headers: { connection: "close" },
    });
  const length = Number(request.headers.get("content-length") ?? 0);
  if (length > max) throw tooLarge();
  const encoding = encodingOf(request.headers.get("content-encoding"));
  if (encoding === undefined && request.headers.has("content-length")) {
    held?.add(length);
    return request.bytes();
  }
  const sent = limitBytes(request.body ?? [], max, tooLarge);
  const plain = encoding === undefined ? sent : limitBytes(decompress(sent, encoding), max, tooLarge);
  return Buffer.concat(await Array.fromAsync(held ? heldPieces(plain, held) : plain));
}

async function* heldPieces(pieces: AsyncIterable<Uint8Array>, held: HeldBytes): AsyncGenerator<Uint8Array, void> {
  for await (const piece of pieces) {
    held.add(piece.length);
    yield piece;
  }
}

/** The text of a body, whose bytes are UTF-8. A TextDecoder is slower, which matters for a prompt of megabytes. */
export const bodyText = (body: string | Uint8Array): string =>
  typeof body === "string" ? body : Buffer.prototype.utf8Slice.call(body, 0, body.length);

function isDeeperThan(value: unknown, levels: number): boolean {
  if (typeof value !== "object" || value === null || value instanceof SourceNumber) return false;
  if (levels === 0) return true;
  for (const member of Array.isArray(value) ? value : Object.values(value))
    if (isDeeperThan(member, levels - 1)) return true;
  return false;
}
