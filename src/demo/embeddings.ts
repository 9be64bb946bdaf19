/** POST /embeddings: vectors made from a hash, so that the same text always has the same vector. */
import { quotaHeaders } from "./accounting";
import type { DemoAccount } from "./accounts";
import { modelFor } from "./models";
import { tokens } from "./scripted-replies";
import type { Arrival } from "./state";
import { invalid, list, number, record, string } from "./wire";

export function embeddings({ demo, seen }: Arrival, account: DemoAccount): Response {
  const body = record(seen.body);
  const model = modelFor(demo, account, string(body.model), "/embeddings");
  const { input, dimensions, encoding_format } = body;
  const max = Number(model.traits.get("inputs") ?? 512);
  const size = number(dimensions) ?? 1536;
  const refuse = (isWrong: boolean, words: string, param = "input") => {
    if (isWrong) throw invalid("invalid_request_body", words, param);
  };
  const isText = (text: unknown): text is string => typeof text === "string";
  const texts = list(input).filter(isText);
  refuse(!Array.isArray(input) || texts.length < input.length, "input must be an array of strings");
  refuse(
    texts.length === 0 || texts.length > max,
    `input must have between 1 and ${max} items, but has ${texts.length}`,
  );
  refuse(
    texts.some((text) => tokens(text) > 8191),
    "This model's maximum context length is 8191 tokens.",
  );
  const format = "encoding_format";
  refuse(
    (encoding_format ?? "float") !== "float",
    `${format} ${JSON.stringify(encoding_format)} is not supported`,
    format,
  );
  refuse(
    dimensions !== undefined && !model.traits.has("dimensions"),
    "This model does not support specifying dimensions.",
    "dimensions",
  );
  refuse(
    !Number.isInteger(size) || size < 1 || size > 1536,
    `Invalid value for 'dimensions': ${dimensions}.`,
    "dimensions",
  );
  const prompt_tokens = texts.reduce((sum, text) => sum + tokens(text), 0);
  return Response.json(
    {
      object: "list",
      data: texts.map((text, index) => ({ object: "embedding", index, embedding: vector(text, size) })),
      model: model.answersAs,
      usage: { prompt_tokens, total_tokens: prompt_tokens },
    },
    { headers: quotaHeaders(demo, account) },
  );
}

/** A unit vector of pseudo-random numbers, seeded with the text's hash. */
function vector(text: string, size: number): number[] {
  let state = Number(BigInt(Bun.hash(text)) & 0xffff_ffffn) || 1;
  const raw = Array.from({ length: size }, () => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return state / 2 ** 31;
  });
  const length = Math.hypot(...raw);
  return raw.map((value) => value / length);
}
