/** Embeddings: the upstream takes arrays of texts of a certain length and answers in numbers; clients say it in more ways. */
import type { App } from "../app";
import { countIn, isObject } from "../dialects/hub/json";
import { ProxyError } from "../errors";
import { readBody } from "../net/fetch";
import type { Visitor } from "../net/guard";
import { parseJson } from "../net/json";
import { beginExchange, type Exchange } from "./exchange";
import { readIncoming } from "./incoming";
import { send } from "./send";
import { chooseEmbeddingsTarget, type Target } from "./target";

/** Texts of one upstream call, where the catalogue does not say how many a model takes. */
const usualInputs = 256;

/** @throws ProxyError for the door to speak; its row is written. */
export async function embed(app: App, request: Request, caller: Visitor): Promise<Response> {
  const exchange = beginExchange(app, request, caller, "embeddings");
  try {
    const incoming = await readIncoming(request);
    caller.keepOpen();
    exchange.asked(incoming);
    const texts = readInput(incoming.body.input);
    const base64 = readFormat(incoming.body.encoding_format) === "base64";
    const target = await chooseEmbeddingsTarget(app, incoming.model);
    exchange.routed(target, { initiator: "agent", reason: "embeddings are nobody's turn", vision: false });

    const vectors: number[][] = [];
    let tokens = 0;
    for (const batch of inBatches(texts, target.model.limits.inputs ?? usualInputs)) {
      const answer = await embedBatch(app, target, batch, incoming.body.dimensions, exchange, exchange.signal);
      vectors.push(...answer.vectors);
      tokens += answer.tokens;
    }
    exchange.usage({ input: tokens, output: 0 });
    exchange.end(200);
    return Response.json({
      object: "list",
      data: vectors.map((vector, index) => ({
        object: "embedding",
        index,
        embedding: base64 ? toBase64(vector) : vector,
      })),
      model: incoming.model,
      usage: { prompt_tokens: tokens, total_tokens: tokens },
    });
  } catch (thrown) {
    throw exchange.failed(thrown);
  }
}

function readInput(input: unknown): string[] {
  const texts = typeof input === "string" ? [input] : input;
  if (Array.isArray(texts) && texts.length > 0 && texts.every((text) => typeof text === "string")) return texts;
  throw new ProxyError(
    "invalid_request",
    "`input` must be a string or a non-empty array of strings; token arrays are not supported.",
    {
      param: "input",
    },
  );
}

function readFormat(format: unknown): "float" | "base64" {
  if (format == null || format === "float") return "float";
  if (format === "base64") return format;
  throw new ProxyError("invalid_request", '`encoding_format` must be "float" or "base64".', {
    param: "encoding_format",
  });
}

function* inBatches<T>(items: T[], size: number): Generator<T[]> {
  for (let start = 0; start < items.length; start += size) yield items.slice(start, start + size);
}

async function embedBatch(
  app: App,
  target: Target,
  input: string[],
  dimensions: unknown,
  exchange: Exchange,
  signal: AbortSignal,
): Promise<{ vectors: number[][]; tokens: number }> {
  const response = await send(
    app,
    target,
    {
      path: target.endpoint,
      body: JSON.stringify({ model: target.model.id, input, ...(dimensions == null ? {} : { dimensions }) }),
      intent: "copilot-panel",
      initiator: "agent",
      headersWithin: app.limits.fullHeaders,
    },
    exchange,
    signal,
  );
  exchange.firstByte();
  return readAnswer(Buffer.from(await readBody(response, 64 * 1024 * 1024, "GitHub Copilot")).toString(), input.length);
}

/** The vectors in the order of the texts, whatever order they came in. */
function readAnswer(body: string, wanted: number): { vectors: number[][]; tokens: number } {
  const json = parseJson(body);
  const data = isObject(json) && Array.isArray(json.data) ? json.data : [];
  const vectors: number[][] = [];
  for (const [position, item] of data.entries())
    if (isObject(item) && Array.isArray(item.embedding)) vectors[countIn(item.index) ?? position] = item.embedding;
  if (vectors.length !== wanted || vectors.includes(undefined as never))
    throw new ProxyError("upstream", "GitHub Copilot's answer does not hold an embedding for each text.");
  const usage = isObject(json) && isObject(json.usage) ? json.usage : {};
  return { vectors, tokens: countIn(usage.prompt_tokens) ?? countIn(usage.total_tokens) ?? 0 };
}

/** Little-endian 32-bit floats, as OpenAI sends them. */
function toBase64(vector: number[]): string {
  return Buffer.from(new Float32Array(vector).buffer).toString("base64");
}
