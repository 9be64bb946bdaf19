/** Embeddings in Google's format: one content, or a batch of requests. */
import { plainName } from "../../json-shape";
import type { EmbeddingsFormat, EmbeddingsRequest } from "../embeddings";
import type { JsonObject } from "../hub/conversation";
import { filledAt, refuse } from "../hub/json";
import { asNumber, fieldsIn, GoogleFields } from "./fields";

const valuesOf = (vector: number[]): JsonObject => ({ values: vector });

export const embedContent: EmbeddingsFormat = {
  errors: "gemini",
  decodeRequest(body) {
    const { text, dimensions, dropped } = decodeOne(new GoogleFields(fieldsIn(body)));
    return { texts: [text], base64: false, dimensions, dropped };
  },
  encodeReply: (_model, { vectors }) => ({ embedding: valuesOf(vectors[0] ?? []) }),
};

export const batchEmbedContents: EmbeddingsFormat = {
  errors: "gemini",
  decodeRequest(body) {
    const requests = new GoogleFields(fieldsIn(body)).objects("requests");
    filledAt(requests, "requests");
    const all = requests.map(decodeOne);
    const [first] = all;
    if (all.some(({ dimensions }) => dimensions !== first?.dimensions))
      refuse("requests", "All requests of a batch must have the same `outputDimensionality`.");
    return {
      texts: all.map(({ text }) => text),
      base64: false,
      dimensions: first?.dimensions,
      dropped: all.flatMap(({ dropped }) => dropped),
    };
  },
  encodeReply: (_model, { vectors }) => ({ embeddings: vectors.map(valuesOf) }),
};

type One = { text: string; dropped: string[] } & Pick<EmbeddingsRequest, "dimensions">;

/**
 * Fields that nobody reads are named as dropped: `taskType` and `title` are two of them, which change Google's vectors.
 * @throws ProxyError `invalid_request` for a content that is not text.
 */
function decodeOne(request: GoogleFields): One {
  const config = request.optionalFields("embedContentConfig");
  for (const fields of [request, config]) fields.skip("model", "content", "outputDimensionality");
  const content = request.fields("content");
  const texts = content.objects("parts").map((part) => part.text("text"));
  if (texts.length === 0) refuse(content.path, `\`${content.path}\` has no text.`);
  return {
    text: texts.join("\n"),
    dimensions: asNumber(request.any("outputDimensionality") ?? config.any("outputDimensionality") ?? undefined),
    dropped: [request, config].flatMap((fields) => Object.keys(fields.rest() ?? {}).map(plainName)),
  };
}
