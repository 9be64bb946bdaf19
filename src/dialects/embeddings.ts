/** Embeddings in OpenAI's format: the client's, and the upstream's. */

import { ProxyError } from "../lib/errors";
import { isObject, parseJson } from "../lib/json";
import type { JsonObject } from "./hub/conversation";
import { countIn, refuse } from "./hub/json";

interface EmbeddingsRequest {
  texts: string[];
  /** The client wants base64 vectors instead of lists of numbers. */
  base64: boolean;
  /** The requested length of the vectors; validated by the upstream. */
  dimensions: unknown;
}

export interface Embeddings {
  /** In the order of the texts. */
  vectors: number[][];
  /** Input tokens; 0 if the upstream does not report them. */
  tokens: number;
}

/** @throws ProxyError `invalid_request` naming the field that cannot be read. */
export const decodeEmbeddingsRequest = ({ input, encoding_format, dimensions }: JsonObject): EmbeddingsRequest => ({
  texts: readInput(input),
  base64: readFormat(encoding_format) === "base64",
  dimensions,
});

/** @param model The model id that the client sent. */
export const encodeEmbeddings = (
  model: string,
  { vectors, tokens }: Embeddings,
  { base64 }: Pick<EmbeddingsRequest, "base64">,
): JsonObject => ({
  object: "list",
  data: vectors.map((vector, index) => ({
    object: "embedding",
    index,
    embedding: base64 ? toBase64(vector) : vector,
  })),
  model,
  usage: { prompt_tokens: tokens, total_tokens: tokens },
});

function readInput(input: unknown): string[] {
  const texts = typeof input === "string" ? [input] : input;
  if (Array.isArray(texts) && texts.length > 0 && texts.every((text) => typeof text === "string")) return texts;
  const sentence = "`input` must be a string or a non-empty array of strings; token arrays are not supported.";
  refuse("input", sentence);
}

function readFormat(format: unknown): "float" | "base64" {
  if (format == null || format === "float") return "float";
  if (format === "base64") return format;
  refuse("encoding_format", '`encoding_format` must be "float" or "base64".');
}

/** The upstream accepts arrays only, and returns numbers. */
export function encodeEmbeddingsRequest(model: string, input: string[], dimensions: unknown): JsonObject {
  return { model, input, ...(dimensions == null ? {} : { dimensions }) };
}

/**
 * Reads the reply to a request with `wanted` texts; its vectors may be in any order.
 * @param who Who answered, for the error.
 * @throws ProxyError `upstream` if a vector is missing.
 */
export function decodeEmbeddings(body: string, wanted: number, who: string): Embeddings {
  const json = parseJson(body);
  const data = isObject(json) && Array.isArray(json.data) ? json.data : [];
  const vectors: number[][] = [];
  for (const [position, item] of data.entries())
    if (isObject(item) && Array.isArray(item.embedding)) vectors[countIn(item.index) ?? position] = item.embedding;
  if (vectors.length !== wanted || vectors.includes(undefined as never))
    throw new ProxyError("upstream", `${who}'s answer does not hold an embedding for each text.`);
  const usage = isObject(json) && isObject(json.usage) ? json.usage : {};
  return { vectors, tokens: countIn(usage.prompt_tokens) ?? countIn(usage.total_tokens) ?? 0 };
}

/** Little-endian 32-bit floats. */
function toBase64(vector: number[]): string {
  return Buffer.from(new Float32Array(vector).buffer).toString("base64");
}
