/**
 * How large each part of a prompt is, and by which numbers its parts are told apart from those of another one. Only sizes, hashes
 * and the names of tools are kept; a long text counts by its bytes where they came in, without being decoded.
 */
import type { Outline } from "../../dialects/overview";
import { type PieceKind, type PieceReader, type PromptHashes, readPieces } from "../../dialects/prompt-pieces";
import { BoundedMap } from "../../lib/bounded-map";
import { isObject } from "../../lib/json";
import {
  beginningOfLong,
  bytesOf,
  type LongText,
  measureText,
  type ReadText,
  readUnmarked,
  type TextMeasure,
} from "../../lib/net/json/json-skeleton";
import { documentTokens } from "./estimate";
import { imageTokens } from "./image-size";

/** Pieces of one kind, of tools those of one MCP server or of one tool. */
interface PieceGroup {
  kind: PieceKind;
  /** The tool, or `mcp__<server>`; null where there is none. */
  tool: string | null;
  count: number;
}

export interface MeasuredPrompt {
  groups: PieceGroup[];
  /** Neighbours of a group, in the prompt's order: three numbers each, the group's index, bytes of texts, tokens of media. */
  runs: number[];
  /** How many of the runs are marked for the cache; 0 if nothing is. */
  markedRuns: number;
  hashes: PromptHashes;
}

/** Groups beyond these count as one without a name. */
const maxGroups = 200;
/** Groups of tools that are compared by their names. */
const maxTools = 128;
/** Messages that are compared: a prompt breaks off at the first one that changed. */
const maxMessages = 600;

/** @param whole Reads the texts of `outline`, which may have marks for texts in `json`. */
export function measurePrompt(outline: Outline, json: Uint8Array, whole: ReadText | undefined): MeasuredPrompt {
  const measuring = new Measuring(json, whole);
  readPieces(outline, measuring);
  return measuring.result();
}

/** The server's part of the name of an MCP tool, as Claude Code, Codex and opencode's plugins write it. */
const toolGroupOf = (tool: string): string => {
  const end = tool.startsWith("mcp__") ? tool.indexOf("__", 5) : -1;
  return end === -1 ? tool : tool.slice(0, end);
};

class Measuring implements PieceReader {
  readonly #json: Uint8Array | undefined;
  readonly #found: PieceGroup[] = [];
  readonly #groups = new Map<PieceKind, Map<string, number>>();
  readonly #runs: number[] = [];
  readonly #tools = new Map<string, number>();
  readonly #messages: number[] = [];
  readonly #text = { bytes: 0, hash: noHash };
  #messageCount = 0;
  #system = noHash;
  #message = noHash;
  /** Nothing but instructions came so far. */
  #isLeading = true;
  #isSpoken = false;
  #markedRuns = 0;

  constructor(
    json: Uint8Array,
    readonly whole: ReadText | undefined,
  ) {
    this.#json = whole && json;
  }

  piece(kind: PieceKind, content: unknown, tool?: string): void {
    if (content == null) return;
    const name = tool === undefined ? null : toolGroupOf(tool);
    const group = this.#groupOf(kind, name);
    const text = this.#text;
    if (kind === "tools") {
      measureTool(text, content);
      this.#add(group, text.bytes, 0);
      this.#addTool(name ?? "", text.hash);
      return;
    }
    if (kind === "images" || kind === "files") {
      const data = dataOf(content);
      measureText(text, data ?? "", this.#json);
      this.#add(group, 0, this.#mediaTokens(kind, data));
    } else {
      if (typeof content === "string") measureText(text, content, this.#json, written.has(kind));
      else measureValue(text, content);
      this.#add(group, text.bytes, 0);
    }
    if (kind === "system" && this.#isLeading) this.#system = mixed(this.#system, text.hash);
    else {
      this.#isSpoken = true;
      this.#message = mixed(this.#message, text.hash);
    }
  }

  endMessage(): void {
    if (!this.#isSpoken) return;
    this.#isLeading = false;
    this.#isSpoken = false;
    this.#messageCount += 1;
    if (this.#messages.length < maxMessages) this.#messages.push(this.#message);
    this.#message = noHash;
  }

  mark(): void {
    this.#markedRuns = this.#runs.length / 3;
  }

  result(): MeasuredPrompt {
    return {
      groups: this.#found,
      runs: this.#runs,
      markedRuns: this.#markedRuns,
      hashes: {
        tools: this.#tools,
        system: this.#system,
        messages: Int32Array.from(this.#messages),
        messageCount: this.#messageCount,
        isLarge: this.#json !== undefined,
      },
    };
  }

  #addTool(name: string, hash: number): void {
    const compared = this.#tools.size < maxTools || this.#tools.has(name) ? name : "";
    this.#tools.set(compared, mixed(this.#tools.get(compared) ?? noHash, hash));
  }

  #groupOf(kind: PieceKind, tool: string | null): number {
    const ofKind = this.#groups.get(kind) ?? new Map<string, number>();
    this.#groups.set(kind, ofKind);
    let at = ofKind.get(tool ?? "");
    if (at === undefined) {
      if (tool !== null && this.#found.length >= maxGroups) return this.#groupOf(kind, null);
      at = this.#found.push({ kind, tool, count: 0 }) - 1;
      ofKind.set(tool ?? "", at);
    }
    this.#found[at]!.count += 1;
    return at;
  }

  #add(group: number, bytes: number, tokens: number): void {
    const runs = this.#runs;
    const last = runs.length - 3;
    // A marked run ends where the mark stands.
    if (last >= 0 && runs[last] === group && last / 3 >= this.#markedRuns) {
      runs[last + 1]! += bytes;
      runs[last + 2]! += tokens;
    } else runs.push(group, bytes, tokens);
  }

  #mediaTokens(kind: PieceKind, data: LongText | undefined): number {
    if (kind === "files") return documentTokens(bytesOf(data ?? ""));
    if (data === undefined) return imageTokens(undefined);
    const start = beginningOfLong(data, 100).indexOf(",") + 1;
    return imageTokens((this.whole ?? readUnmarked)(data, beginningLength).slice(start));
  }
}

/** What people and clients write: a time in it may change, and nothing else. */
const written: ReadonlySet<PieceKind> = new Set(["system", "person", "client"]);

/** Characters of an image in which its size is looked for. */
const beginningLength = 2_048;

/** Hashes begin with it. */
const noHash = 0;

/** A text by its length and one of its letters. */
const sampled = (length: number, letter: number): number => length * 128 + letter;

/** Not the sum, which would be the same in another order. */
const mixed = (hash: number, next: number): number => (Math.imul(hash, 31) + next) | 0;

/** Sizes of tools by their hashes: a client sends the same ones with each request, and to write them as JSON takes long. */
const toolBytes = new BoundedMap<number, number>(5_000);

/** Two tools are the same if their members, names, descriptions and parameters are, as far as lengths and samples tell. */
function measureTool(to: TextMeasure, tool: unknown): void {
  const of = isObject(tool) && isObject(tool.function) ? tool.function : tool;
  if (!isObject(of)) {
    measureValue(to, tool);
    return;
  }
  const schema = of.input_schema ?? of.parameters ?? of.inputSchema ?? of.parametersJsonSchema;
  // The same tool is larger in another dialect.
  let hash = noHash;
  for (const part of [tool, of, schema])
    if (isObject(part)) for (const name in part) hash = mixed(hash, sampled(name.length, name.charCodeAt(0)));
  for (const text of [of.name ?? of.type, of.description])
    if (typeof text === "string") {
      measureText(to, text, empty);
      hash = mixed(hash, to.hash);
    }
  const properties = isObject(schema) ? schema.properties : undefined;
  if (isObject(properties))
    for (const name in properties) {
      const property = properties[name] as { description?: unknown } | null;
      const described = property?.description;
      hash = mixed(hash, sampled(name.length, name.charCodeAt(0)));
      if (typeof described === "string") hash = mixed(hash, described.length);
    }
  let bytes = toolBytes.get(hash);
  if (bytes === undefined) {
    bytes = Buffer.byteLength(JSON.stringify(tool));
    toolBytes.set(hash, bytes);
  }
  to.bytes = bytes;
  to.hash = hash;
}

/** Tools have no marks. */
const empty = new Uint8Array();

/** The size of a value's JSON, about; its hash is made of how long its members are. */
function measureValue(to: TextMeasure, value: unknown): void {
  to.bytes = 0;
  to.hash = noHash;
  addValue(to, value);
}

function addValue(to: TextMeasure, value: unknown): void {
  if (typeof value === "string") {
    const { length } = value;
    to.bytes += length + 3;
    to.hash = mixed(to.hash, sampled(length, value.charCodeAt(length >> 1)));
  } else if (Array.isArray(value)) for (const member of value) addValue(to, member);
  else if (typeof value !== "object" || value === null) {
    to.bytes += 5;
    to.hash = mixed(to.hash, Number(value) | 0);
  } else
    for (const name in value) {
      to.bytes += name.length + 3;
      to.hash = mixed(to.hash, name.length);
      addValue(to, (value as Record<string, unknown>)[name]);
    }
}

/** Where the dialects have an image's or a file's data, or its address. */
function dataOf(part: unknown): LongText | undefined {
  let value = part;
  for (let depth = 0; depth < 3 && isObject(value); depth += 1) {
    const { source, image_url, file, input_audio, inlineData, inline_data, fileData, file_data, data, url } = value;
    const { fileUri, file_uri, file_url, file_id } = value;
    value =
      source ?? image_url ?? file ?? input_audio ?? inlineData ?? inline_data ?? fileData ?? file_data ?? data ?? url;
    value ??= fileUri ?? file_uri ?? file_url ?? file_id;
  }
  return typeof value === "string" ? value : undefined;
}
