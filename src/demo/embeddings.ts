/** POST /embeddings: vectors made from a hash, so that the same text always has the same vector. */
import { quotaHeaders } from "./accounting";
import type { DemoState } from "./accounts";
import type { ModelCall } from "./model-call";
import { modelFor } from "./models";
import { tokens } from "./scripted-replies";
import { invalid, number, string } from "./wire";

export function embeddings(demo: DemoState, { account, body }: ModelCall): Response {
  const model = modelFor(demo, account, string(body.model), "/embeddings");
  const { input, dimensions, encoding_format } = body;
  const max = Number(model.traits.get("inputs") ?? 512);
  if (!Array.isArray(input) || !input.every((text): text is string => typeof text === "string"))
    throw invalid("invalid_request_body", "input must be an array of strings", "input");
  if (input.length === 0 || input.length > max)
    throw invalid(
      "invalid_request_body",
      `input must have between 1 and ${max} items, but has ${input.length}`,
      "input",
    );
  if (input.some((text) => tokens(text) > 8191))
    throw invalid("invalid_request_body", "This model's maximum context length is 8191 tokens.", "input");
  if (encoding_format !== undefined && encoding_format !== "float")
    throw invalid(
      "invalid_request_body",
      `encoding_format ${JSON.stringify(encoding_format)} is not supported`,
      "encoding_format",
    );
  if (dimensions !== undefined && !model.traits.has("dimensions"))
    throw invalid("invalid_request_body", "This model does not support specifying dimensions.", "dimensions");
  const size = number(dimensions) ?? 1536;
  if (!Number.isInteger(size) || size < 1 || size > 1536)
    throw invalid("invalid_request_body", `Invalid value for 'dimensions': ${dimensions}.`, "dimensions");
  const prompt_tokens = input.reduce((sum, text) => sum + tokens(text), 0);
  return Response.json(
    {
      object: "list",
      data: input.map((text, index) => ({ object: "embedding", index, embedding: vector(text, size) })),
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
