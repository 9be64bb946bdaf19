/**
 * Bytes ⇄ frames of a server-sent event stream (WHATWG HTML, section 9.2).
 * A frame keeps its original bytes, so that an unchanged frame can be sent on exactly as it arrived.
 */

import { isAscii } from "node:buffer";
import { ProxyError } from "../../errors";
import { parseWithSource } from "../../json";
import type { Sink } from "./stream";

export interface SseFrame {
  event?: string;
  /** The `data` lines joined by newlines; undefined for a frame of comments or blank lines only. */
  data?: string;
  /** As it arrived, with its blank line; missing on frames that dragoman made. */
  bytes?: Uint8Array;
  /** The data as JSON, once {@link jsonOf} was asked for it. */
  json?: unknown;
}

export interface FrameSink extends Sink<SseFrame> {
  /**
   * Takes frames before they are read, where they need not be.
   * @param text A character for each of the bytes; a frame begins at `start`.
   * @returns Where the frames end that were taken.
   */
  pass?(text: string, start: number, bytes: Uint8Array): number;
}

/** Maximum size of a frame, in bytes; a stream with a larger one fails. */
const frameLimit = 16 * 1024 * 1024;

/**
 * Bytes to frames, wherever the chunks were cut and whatever line endings (LF, CRLF, CR) they use.
 * A tail without a blank line is a frame only if its data is whole JSON; otherwise the stream was cut inside it.
 * @throws ProxyError `upstream` when a frame grows past {@link frameLimit}.
 */
export const readSse = (next: FrameSink): Sink<Uint8Array> => new SseReader(next);

const noBytes = new Uint8Array(0);
const decoder = new TextDecoder(); // it also drops a byte order mark

class SseReader implements Sink<Uint8Array> {
  readonly #next: FrameSink;
  /** The bytes of an incomplete frame are at its beginning; it doubles, so that a large frame is not copied with each chunk. */
  #buffer = noBytes;
  #held = 0;

  constructor(next: FrameSink) {
    this.#next = next;
  }

  push(chunk: Uint8Array): void {
    const buffer = this.#held === 0 ? chunk : this.#heldWith(chunk);
    // A large frame is not searched again with each of its chunks.
    if (buffer !== chunk && !mayEnd(buffer, chunk)) return void this.#keep(buffer, 0);
    // One character per byte, at memory speed: enough to find the frames, and the text itself when all is ASCII.
    const text = latin1(buffer);
    let start = this.#next.pass?.(text, 0, buffer) ?? 0;
    if (start === text.length) return void this.#keep(buffer, start);
    const ascii = isAscii(buffer);
    const frameEnd = text.includes("\r") ? anyFrameEnd : lineFeedFrameEnd;
    while (start < text.length) {
      const end = frameEnd(text, start);
      if (end === -1) break;
      const bytes = part(buffer, start, end);
      this.#next.push(readFrame(ascii ? text.slice(start, end) : decoder.decode(bytes), bytes));
      start = this.#next.pass?.(text, end, buffer) ?? end;
    }
    this.#keep(buffer, start);
  }

  end(): void {
    const tail = readFrame(decoder.decode(this.#buffer.subarray(0, this.#held)), undefined);
    if (tail.data === "[DONE]" || jsonOf(tail) !== undefined) this.#next.push(tail);
    this.#next.end();
  }

  #heldWith(chunk: Uint8Array): Uint8Array {
    const length = this.#held + chunk.length;
    if (length > this.#buffer.length) {
      const larger = Buffer.allocUnsafe(Math.max(length, Math.min(2 * this.#held, frameLimit)));
      larger.set(this.#buffer.subarray(0, this.#held));
      this.#buffer = larger;
    }
    this.#buffer.set(chunk, this.#held);
    this.#held = length;
    return this.#buffer.subarray(0, length);
  }

  /** Keeps the bytes from `start` on. */
  #keep(whole: Uint8Array, start: number): void {
    const length = whole.length - start;
    if (length > frameLimit) throw new ProxyError("upstream", "The upstream sent an event of over 16 MiB.");
    if (start === 0 && this.#held > 0) return;
    // A new buffer, because frames that were already pushed may still refer to the old one.
    if (length > 0) this.#buffer = new Uint8Array(whole.subarray(start));
    this.#held = length;
  }
}

/** Whether the frame at the buffer's start may end in its last chunk, that is, whether one line end follows another. */
function mayEnd(buffer: Uint8Array, chunk: Uint8Array): boolean {
  if (!chunk.includes(10) && !chunk.includes(13)) return false;
  return buffer.length - chunk.length < 65_536 || /\n[\n\r]|\r\r/.test(latin1(buffer.subarray(-chunk.length - 1)));
}

export const latin1 = (bytes: Uint8Array): string => Buffer.prototype.latin1Slice.call(bytes, 0, bytes.length);

export const part = (buffer: Uint8Array, start: number, end: number): Uint8Array =>
  start === 0 && end === buffer.length ? buffer : buffer.subarray(start, end);

/** The frame's data as JSON, parsed at the first call; undefined when it is not JSON, which is found out with each call. */
export function jsonOf(frame: SseFrame): unknown {
  frame.json ??= frame.data === undefined ? undefined : parseWithSource(frame.data);
  return frame.json;
}

/** A new frame. */
export function jsonFrame(json: unknown, event?: string): SseFrame {
  return event === undefined ? { data: JSON.stringify(json) } : { event, data: JSON.stringify(json) };
}

/** A frame that is sent as this text. */
export const rawFrame = (text: string): SseFrame => ({ bytes: encoder.encode(text) });

/** A comment frame: it keeps a connection alive, and clients ignore it. */
export const commentFrame = (text: string): SseFrame => rawFrame(`: ${text}\n\n`);

/** Frames to bytes, batched: `take` returns all that was pushed since the last call as one piece; adjacent unchanged frames are not copied. */
export const gatherFrames = (): Sink<SseFrame> & { take(): Uint8Array | undefined } => new FrameGatherer();

class FrameGatherer implements Sink<SseFrame> {
  #pieces: Uint8Array[] = [];
  /** After the pieces: either a text, or adjacent frames in the same memory. */
  #text = "";
  #first: Uint8Array | undefined;
  #length = 0;

  push(frame: SseFrame): void {
    const { bytes } = frame;
    const first = this.#first;
    if (first && bytes && isNext(bytes, first, this.#length)) {
      this.#length += bytes.length;
      return;
    }
    if (first || (bytes && this.#text)) this.#pieces.push(this.#takeLast()!);
    if (bytes) {
      this.#first = bytes;
      this.#length = bytes.length;
    } else this.#text += frameText(frame);
  }

  end(): void {}

  take(): Uint8Array | undefined {
    const last = this.#takeLast();
    const pieces = this.#pieces;
    if (pieces.length === 0) return last;
    this.#pieces = [];
    return Buffer.concat(last ? [...pieces, last] : pieces);
  }

  #takeLast(): Uint8Array | undefined {
    const [text, first, length] = [this.#text, this.#first, this.#length];
    this.#text = "";
    this.#first = undefined;
    if (!first) return text ? encoder.encode(text) : undefined;
    return length === first.length ? first : new Uint8Array(first.buffer, first.byteOffset, length);
  }
}

/** Called from the second piece on only: the first access to an array's `buffer` costs more than the rest of a frame's work. */
const isNext = (bytes: Uint8Array, first: Uint8Array, length: number): boolean =>
  first.buffer === bytes.buffer && first.byteOffset + length === bytes.byteOffset;

const encoder = new TextEncoder();

/** A frame as it is sent. */
export function frameText(frame: SseFrame): string {
  const event = frame.event === undefined ? "" : `event: ${frame.event}\n`;
  return frame.data === undefined ? `${event}\n` : `${event}data: ${oneLineEach(frame.data)}\n\n`;
}

/** Nearly all data is one line. */
const oneLineEach = (data: string): string => (data.includes("\n") ? data.replaceAll("\n", "\ndata: ") : data);

function lineFeedFrameEnd(text: string, start: number): number {
  if (text.charCodeAt(start) === 10) return blankEnd(text, start);
  const found = text.indexOf("\n\n", start);
  return found === -1 ? -1 : found + 2;
}

const isLineEnd = (text: string, at: number): boolean => text.charCodeAt(at) === 10 || text.charCodeAt(at) === 13;

/** Blank lines before a frame are one, however many there are. */
function blankEnd(text: string, start: number): number {
  let end = start + 1;
  while (isLineEnd(text, end)) end++;
  return end;
}

/**
 * The same for any mixture of line endings. A CR at the end of the text counts at once; if its LF follows, it is an extra
 * blank line, which is harmless.
 */
function anyFrameEnd(text: string, start: number): number {
  if (isLineEnd(text, start)) return blankEnd(text, start);
  for (let at = start; at < text.length; ) {
    let lineEnd = at;
    while (lineEnd < text.length && text.charCodeAt(lineEnd) !== 10 && text.charCodeAt(lineEnd) !== 13) lineEnd++;
    if (lineEnd === text.length) return -1;
    const after = text.charCodeAt(lineEnd) === 13 && text.charCodeAt(lineEnd + 1) === 10 ? lineEnd + 2 : lineEnd + 1;
    if (lineEnd === at) return after;
    at = after;
  }
  return -1;
}

/** The frame of these bytes. */
export const frameIn = (bytes: Uint8Array): SseFrame => readFrame(decoder.decode(bytes), bytes);

function readFrame(text: string, bytes: Uint8Array | undefined): SseFrame {
  if (isLineEnd(text, 0)) return { bytes };
  return readPlainFrame(text, bytes) ?? readLines(text, bytes);
}

/** The most common frames by far: one line of data, with or without an event name before it. */
function readPlainFrame(text: string, bytes: Uint8Array | undefined): SseFrame | undefined {
  const dataAt = text.startsWith("event: ") ? text.indexOf("\n") + 1 : 0;
  if (!text.startsWith("data: ", dataAt) || text.indexOf("\n", dataAt) !== text.length - 2 || text.includes("\r"))
    return undefined;
  const data = text.slice(dataAt + 6, -2);
  return { event: dataAt === 0 ? undefined : text.slice(7, dataAt - 1), data, bytes, json: undefined };
}

function readLines(text: string, bytes: Uint8Array | undefined): SseFrame {
  const frame: SseFrame = { bytes };
  for (const line of text.split(/\r\n|\n|\r/)) {
    const colon = line.indexOf(":");
    const field = colon === -1 ? line : line.slice(0, colon);
    const value = colon === -1 ? "" : line.slice(line[colon + 1] === " " ? colon + 2 : colon + 1);
    if (field === "event") frame.event = value;
    else if (field === "data") frame.data = frame.data === undefined ? value : `${frame.data}\n${value}`;
  }
  // Copilot may end a stream with its error as bare JSON, without `data:`.
  if (frame.data === undefined && text.startsWith("{")) frame.data = text.trim();
  return frame;
}
