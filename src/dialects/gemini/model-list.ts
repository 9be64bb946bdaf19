/** Models in Google's format. */
import type { JsonObject } from "../hub/conversation";
import { omitUndefined } from "../hub/json";

/** What Google's format says of a model. Unknown limits are undefined. */
interface GoogleModelFacts {
  id: string;
  name: string;
  kind: "chat" | "embeddings";
  /** Tokens. */
  prompt?: number;
  output?: number;
  thinks: boolean;
}

/** Embeddings are not served in Google's format. */
const methods = { chat: ["generateContent", "streamGenerateContent", "countTokens"], embeddings: [] };

export const encodeModel = ({ id, name, kind, prompt, output, thinks }: GoogleModelFacts): JsonObject =>
  omitUndefined({
    name: `models/${id}`,
    version: id,
    displayName: name,
    inputTokenLimit: prompt,
    outputTokenLimit: output,
    supportedGenerationMethods: methods[kind],
    thinking: thinks,
  });
