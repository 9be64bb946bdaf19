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
  const { input, dimensions } = body;
  const format = body.encoding_format ?? "float";
  const max = Number(model.traits.get("inputs") ?? 512);
  const size = number(dimensions) ?? 1536;
  const texts = list(input).filter((text) => typeof text === "string");
  // biome-ignore format: a table is read by its rows
  const rules: [isBroken: boolean, words: string, param: string][] = [
    [!Array.isArray(input) || texts.length < input.length, "input must be an array of strings", "input"],
    [texts.length === 0 || texts.length > max, `input must have between 1 and ${max} items, but has ${texts.length}`, "input"],
    [texts.some((text) => tokens(text) > 8191), "This model's maximum context length is 8191 tokens.", "input"],
    [format !== "float", `encoding_format ${JSON.stringify(format)} is not supported`, "encoding_format"],
    [dimensions !== undefined && !model.traits.has("dimensions"), "This model does not support specifying dimensions.", "dimensions"],
    [!Number.isInteger(size) || size < 1 || size > 1536, `Invalid value for 'dimensions': ${dimensions}.`, "dimensions"],
  ];
  for (const [isBroken, words, param] of rules) if (isBroken) throw invalid("invalid_request_body", words, param);
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
