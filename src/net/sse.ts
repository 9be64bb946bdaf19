/**
 * Bytes ⇄ frames of a server-sent event stream (WHATWG HTML, section 9.2).
 * A frame keeps the bytes it came in, so that whoever changes nothing can send on exactly what arrived.
 */
import { ProxyError } from "../errors";
import type { Sink, Stage } from "./stream";

export interface SseFrame {
  event?: string;
  /** The `data` lines joined by newlines; undefined for a frame of comments or blank lines only. */
  data?: string;
  /** As it arrived, with its blank line; missing on frames of our own making. */
  bytes?: Uint8Array;
}

/** What one frame may weigh before the stream is given up, in bytes. */
export const frameLimit = 16 * 1024 * 1024;

/**
 * Bytes to frames, wherever the chunks were cut and whichever line ends (LF, CRLF, CR) they use.
 * A tail without a blank line is a frame only if its data is whole JSON; otherwise the stream was cut inside it.
 * @throws ProxyError `upstream` when a frame grows past {@link frameLimit}.
 */
export const readSse: Stage<Uint8Array, SseFrame> = (next) => {
  const decoder = new TextDecoder(); // it also drops a byte order mark
  const held = heldBytes();
  return {
    push(chunk) {
      const buffer = held.with(chunk);
      // Without a carriage return in sight every frame ends at "\n\n", which is found at memory speed.
      const frameEnd = buffer.includes(13) ? anyFrameEnd : lineFeedFrameEnd;
      let start = 0;
      for (let end = frameEnd(buffer, 0); end !== -1; end = frameEnd(buffer, start)) {
        const bytes = buffer.subarray(start, end);
        next.push(readFrame(decoder.decode(bytes), bytes));
        start = end;
      }
      held.keep(buffer, start);
    },
    end() {
      const tail = readFrame(decoder.decode(held.rest()), undefined);
      if (tail.data === "[DONE]" || jsonOf(tail) !== undefined) next.push(tail);
      next.end();
    },
  };
};

/** The frame's data as JSON, parsed once however many ask; undefined when it is not JSON. */
export function jsonOf(frame: SseFrame): unknown {
  let parsed = parsedFrames.get(frame);
  if (!parsed) {
    parsed = { json: frame.data === undefined ? undefined : parseJson(frame.data) };
    parsedFrames.set(frame, parsed);
  }
  return parsed.json;
}

const parsedFrames = new WeakMap<SseFrame, { json: unknown }>();

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** A frame of our own making. */
export function jsonFrame(json: unknown, event?: string): SseFrame {
  return event === undefined ? { data: JSON.stringify(json) } : { event, data: JSON.stringify(json) };
}

/** A comment: keeps a connection alive and is no event to anybody. */
export const commentFrame = (text: string): SseFrame => ({ bytes: new TextEncoder().encode(`: ${text}\n\n`) });

/** Frames to bytes, batched: what was pushed since the last `take` comes as one piece, untouched runs without a copy. */
export function gatherFrames(): Sink<SseFrame> & { take(): Uint8Array | undefined } {
  let pieces: Uint8Array[] = [];
  let text = "";
  let run: { buffer: ArrayBufferLike; start: number; end: number } | undefined;

  const flushText = () => {
    if (text) pieces.push(encoder.encode(text));
    text = "";
  };
  const flushRun = () => {
    if (run) pieces.push(new Uint8Array(run.buffer, run.start, run.end - run.start));
    run = undefined;
  };

  return {
    push(frame) {
      const { bytes } = frame;
      if (!bytes) {
        flushRun();
        text += frameText(frame);
      } else if (run?.buffer === bytes.buffer && run.end === bytes.byteOffset) {
        run.end += bytes.length;
      } else {
        flushText();
        flushRun();
        run = { buffer: bytes.buffer, start: bytes.byteOffset, end: bytes.byteOffset + bytes.length };
      }
    },
    end() {},
    take() {
      flushText();
      flushRun();
      const taken = pieces;
      pieces = [];
      return taken.length < 2 ? taken[0] : Buffer.concat(taken);
    },
  };
}

const encoder = new TextEncoder();

function frameText(frame: SseFrame): string {
  const event = frame.event === undefined ? "" : `event: ${frame.event}\n`;
  const data = frame.data === undefined ? "" : `data: ${frame.data.replaceAll("\n", "\ndata: ")}\n`;
  return `${event}${data}\n`;
}

/** The bytes of a frame that has not ended yet, in a buffer that doubles, so that a large frame is not copied per chunk. */
function heldBytes() {
  let buffer = new Uint8Array(0);
  let length = 0;
  return {
    /** What is held and the chunk behind it. */
    with(chunk: Uint8Array): Uint8Array {
      if (length === 0) return chunk;
      if (length + chunk.length > buffer.length) {
        const larger = new Uint8Array(2 * (length + chunk.length));
        larger.set(buffer.subarray(0, length));
        buffer = larger;
      }
      buffer.set(chunk, length);
      length += chunk.length;
      return buffer.subarray(0, length);
    },
    /** Hold on to what lies behind `start`. */
    keep(whole: Uint8Array, start: number) {
      if (whole.length - start > frameLimit)
        throw new ProxyError("upstream", "The upstream sent an event of over 16 MiB.");
      if (start === 0 && length > 0) return;
      // A fresh buffer: frames already handed on may still look into the old one.
      length = whole.length - start;
      buffer = whole.slice(start);
    },
    rest: () => buffer.subarray(0, length),
  };
}

const blankLine = Buffer.from("\n\n");

function lineFeedFrameEnd(buffer: Uint8Array, start: number): number {
  if (buffer[start] === 10) return start + 1;
  const found = Buffer.from(buffer.buffer, buffer.byteOffset, buffer.length).indexOf(blankLine, start);
  return found === -1 ? -1 : found + 2;
}

/**
 * The same for any mixture of line ends. A CR at the very end counts at once: should its LF follow, that is a blank
 * line of its own and harmless.
 */
function anyFrameEnd(buffer: Uint8Array, start: number): number {
  for (let at = start; at < buffer.length; ) {
    let lineEnd = at;
    while (lineEnd < buffer.length && buffer[lineEnd] !== 10 && buffer[lineEnd] !== 13) lineEnd++;
    if (lineEnd === buffer.length) return -1;
    const after = buffer[lineEnd] === 13 && buffer[lineEnd + 1] === 10 ? lineEnd + 2 : lineEnd + 1;
    if (lineEnd === at) return after;
    at = after;
  }
  return -1;
}

function readFrame(text: string, bytes: Uint8Array | undefined): SseFrame {
  return readPlainFrame(text, bytes) ?? readLines(text, bytes);
}

/** The commonest frames by far: one line of data, with the event's name before it or without. */
function readPlainFrame(text: string, bytes: Uint8Array | undefined): SseFrame | undefined {
  const dataAt = text.startsWith("event: ") ? text.indexOf("\n") + 1 : 0;
  if (!text.startsWith("data: ", dataAt) || text.indexOf("\n", dataAt) !== text.length - 2 || text.includes("\r"))
    return undefined;
  const data = text.slice(dataAt + 6, -2);
  return dataAt === 0 ? { data, bytes } : { event: text.slice(7, dataAt - 1), data, bytes };
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
