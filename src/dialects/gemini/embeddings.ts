/** Embeddings in Google's format: one content, or a batch of requests. */
import { ProxyError } from "../../errors";
import type { EmbeddingsFormat, EmbeddingsRequest } from "../embeddings";
import type { JsonObject } from "../hub/conversation";
import { filledAt, omit, textAt } from "../hub/json";
import { asNumber, fieldsAt, fieldsIn, objectsAt, optionalFieldsAt } from "./fields";

/** The fields that are read; `taskType` and `title`, which change Google's vectors, are among those left out. */
const knownFields = new Set(["model", "content", "outputDimensionality", "embedContentConfig"]);

const valuesOf = (vector: number[]): JsonObject => ({ values: vector });

export const embedContent: EmbeddingsFormat = {
  errors: "gemini",
  decodeRequest(body) {
    const { text, dimensions, dropped } = decodeOne(fieldsIn(body), "");
    return { texts: [text], base64: false, dimensions, dropped };
  },
  encodeReply: (_model, { vectors }) => ({ embedding: valuesOf(vectors[0] ?? []) }),
};

export const batchEmbedContents: EmbeddingsFormat = {
  errors: "gemini",
  decodeRequest(body) {
    const all = filledAt(objectsAt(fieldsIn(body).requests, "requests"), "requests").map((request, index) =>
      decodeOne(fieldsAt(request, `requests[${index}]`), `requests[${index}].`),
    );
    const [first] = all;
    if (all.some(({ dimensions }) => dimensions !== first?.dimensions))
      throw new ProxyError("invalid_request", "All requests of a batch must have the same `outputDimensionality`.", {
        param: "requests",
      });
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

/** @throws ProxyError `invalid_request` for a content that is not text. */
function decodeOne(request: JsonObject, path: string): One {
  const config = optionalFieldsAt(request.embedContentConfig, `${path}embedContentConfig`);
  const { parts } = fieldsAt(request.content, `${path}content`);
  const texts = objectsAt(parts, `${path}content.parts`).map((part, index) =>
    textAt(fieldsAt(part, `${path}content.parts[${index}]`).text, `${path}content.parts[${index}].text`),
  );
  if (texts.length === 0)
    throw new ProxyError("invalid_request", `\`${path}content\` has no text.`, { param: `${path}content` });
  return {
    text: texts.join("\n"),
    dimensions: asNumber(request.outputDimensionality ?? config.outputDimensionality ?? undefined),
    dropped: [...Object.keys(omit(request, knownFields) ?? {}), ...Object.keys(omit(config, knownFields) ?? {})],
  };
}
