/** Reads the body of a request once: its bytes, decompressed where they are, and its JSON. */
import { isUtf8 } from "node:buffer";
import { ProxyError, quoted, words } from "../../errors";
import { isObject, parseJson, parseWithSource, SourceNumber } from "../../json";
import { mendHalves } from "../json/half-characters";
import { fillExcept, type MarkPlace, type Skeleton, skeletonOf } from "../json/json-skeleton";
import type { SentBytes } from "../out/fetch";
import { limitBytes } from "./byte-limit";
import { decompress, encodingOf } from "./decompress";
import type { HeldBytes } from "./held-bytes";

export interface RequestBody {
  /** As sent, without a byte order mark and {@link mendHalves halves of characters}. The text is not kept: for a large prompt it would take as much memory again, or twice. */
  bytes: Uint8Array;
  /** Its numbers keep the digits with which they were written. In a large one long texts may be marks of the skeleton. */
  body: Record<string, unknown>;
  /** Missing where `body` has no marks. */
  skeleton?: Skeleton;
  /** It had halves of characters. */
  isMended?: boolean;
}

/** Bytes. */
export const bodyLimit = 32 * 1024 * 1024;
/** Levels of nested arrays and objects. */
const maxDepth = 256;
/**
 * Bytes. In a smaller body long texts are no marks. In a larger one they cost less to cut out than to parse, and a waiting
 * stream holds them once, as they were sent, and not as a parsed text too, which takes two bytes for each character.
 */
const minSkeleton = 8 * 1024;

/**
 * The body as the relay takes it.
 * @param sent What {@link readBytes} has read. @param longTexts Where texts of a large body may be marks; nowhere if it is not given.
 * @throws ProxyError `invalid_request`: it names what is wrong and where.
 */
export function requestBody(sent: Uint8Array, longTexts: MarkPlace | undefined): RequestBody {
  const { bytes, isMended } = mended(sent);
  const skeleton = longTexts && bytes.length > minSkeleton ? skeletonOf(bytes) : undefined;
  const body = bodyObject(parseWithSource(skeleton?.text ?? bodyText(bytes)));
  if (longTexts && skeleton) fillExcept(body, skeleton, longTexts);
  return { bytes, isMended, body, ...(skeleton ? { skeleton } : {}) };
}

/**
 * The request's body as a JSON object, whatever content type it claims, decompressed where it is compressed.
 * @param max Bytes, compressed or plain.
 */
export async function readJson(
  request: Request,
  max = bodyLimit,
  held?: HeldBytes,
): Promise<Omit<RequestBody, "skeleton">> {
  const { bytes, isMended } = mended(await readBytes(request, max, held));
  return { bytes, isMended, body: bodyObject(parseJson(bodyText(bytes))) };
}

/** The body without a byte order mark and halves of characters. */
function mended(sent: Uint8Array): Pick<RequestBody, "bytes" | "isMended"> {
  // No JSON begins with a byte order mark.
  const bytes = sent[0] === 0xef && sent[1] === 0xbb && sent[2] === 0xbf ? sent.subarray(3) : sent;
  if (!isUtf8(bytes)) throw new ProxyError("invalid_request", "The request body is not valid UTF-8.");
  return { bytes, isMended: mendHalves(bytes) };
}

/** @param body Undefined for text that is not JSON. */
function bodyObject(body: unknown): Record<string, unknown> {
  if (body === undefined) throw new ProxyError("invalid_request", "The request body is not valid JSON.");
  if (!isObject(body)) throw new ProxyError("invalid_request", "The request body must be a JSON object.");
  if (isDeeperThan(body, maxDepth))
    throw new ProxyError("invalid_request", `The request body is nested too deep: at most ${maxDepth} levels.`);
  return body;
}

function refuseCharsets(headers: Headers): void {
  const charset = /charset\s*=\s*"?([\w-]+)/i.exec(headers.get("content-type") ?? "")?.[1]?.toLowerCase();
  if (charset !== undefined && charset !== "utf-8" && charset !== "utf8" && charset !== "us-ascii")
    throw new ProxyError("unsupported_media", words`The request body must be UTF-8, not ${quoted(charset)}.`);
}

/**
 * The bytes of a body, decompressed where it is compressed.
 * @param max Bytes, compressed or plain. @param held Counts what the body takes of the person's memory.
 * @throws ProxyError `too_large`, `unsupported_media`, `rate_limit`.
 */
export function readBytes(request: Request, max = bodyLimit, held?: HeldBytes): Promise<Uint8Array> {
  refuseCharsets(request.headers);
  const length = Number(request.headers.get("content-length") ?? 0);
  if (length > max) throw tooLarge(max);
  const encoding = encodingOf(request.headers.get("content-encoding"));
  if (encoding === undefined && request.headers.has("content-length")) {
    held?.add(length);
    return request.bytes();
  }
  return readPieces(request, max, encoding, held);
}

const tooLarge = (max: number) =>
  new ProxyError("too_large", `The request body is over ${max / 1024 / 1024} MiB.`, {
    headers: { connection: "close" },
  });

function readPieces(
  { body }: Request,
  max: number,
  encoding: string | undefined,
  held: HeldBytes | undefined,
): Promise<Uint8Array> {
  const refuse = () => tooLarge(max);
  const sent = limitBytes(body ?? [], max, refuse);
  const plain = encoding === undefined ? sent : limitBytes(decompress(sent, encoding), max, refuse);
  return Array.fromAsync(held ? heldPieces(plain, held) : plain).then((pieces) => Buffer.concat(pieces));
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

/** JSON to send. */
export type Body = string | Uint8Array | MarkedJson;

/** JSON in which the long texts that the client wrote are marks until it is sent. */
interface MarkedJson {
  json: string;
  skeleton: Skeleton;
}

/** @param json Made of the skeleton or its values. */
export const withTexts = (json: string, skeleton: Skeleton | undefined): Body => (skeleton ? { json, skeleton } : json);

const isMarked = (body: Body): body is MarkedJson => typeof body !== "string" && "json" in body;

/** The body to its last byte. It holds the client's long texts where they came in, without a copy of them. */
const piecesOf = (body: Body): (string | Uint8Array)[] => (isMarked(body) ? body.skeleton.fill(body.json) : [body]);

/** Bytes: a smaller body is copied by `fetch` in less time than a blob is made. */
const minBlob = 8 * 1024;

/** The body as `fetch` takes it. */
export function asSent(body: Body): SentBytes {
  if (!isMarked(body) && body.length < minBlob) return body;
  const [piece, ...others] = piecesOf(body);
  if (piece !== undefined && piece.length < minBlob && others.length === 0) return piece;
  // Bun makes a blob of one piece above 8 MiB in a file of memory, which takes four times as long as in the usual memory.
  return new Blob([piece ?? "", "", ...others]);
}

/** The body in one string or one buffer, with a copy of the long texts. */
export const inOnePiece = (body: Body): string | Uint8Array =>
  isMarked(body)
    ? Buffer.concat(piecesOf(body).map((piece) => (typeof piece === "string" ? Buffer.from(piece) : piece)))
    : body;

/**
 * The body with its text changed; the very same if nothing was.
 * @param edit Gets a large text without its long strings, and what puts them back in a value of it.
 */
export function editBody(body: Body, edit: (text: string, whole: (value: unknown) => unknown) => string): Body {
  const skeleton = isMarked(body) ? body.skeleton : typeof body === "string" ? undefined : skeletonOf(body);
  const text = isMarked(body) ? body.json : (skeleton?.text ?? bodyText(body));
  const whole = (value: unknown) =>
    skeleton ? parseWithSource(String(inOnePiece(withTexts(JSON.stringify(value), skeleton)))) : value;
  const edited = edit(text, whole);
  return edited === text ? body : withTexts(edited, skeleton);
}

function isDeeperThan(value: unknown, levels: number): boolean {
  if (typeof value !== "object" || value === null || value instanceof SourceNumber) return false;
  if (levels === 0) return true;
  if (Array.isArray(value)) {
    for (let at = 0; at < value.length; at++) if (isDeeperThan(value[at], levels - 1)) return true;
  } else for (const name in value) if (isDeeperThan((value as Record<string, unknown>)[name], levels - 1)) return true;
  return false;
}
