/** What the strictest readers of a gemini stream ask for: `@google/genai`, its chat sessions, and Gemini CLI. */
import type { Conversation } from "../../src/dialects/hub/conversation";
import { isObject } from "../../src/lib/json";
import { jsonOf, type SseFrame } from "../../src/lib/net/stream/sse";

const partKeys = new Set(["text", "thought", "thoughtSignature", "functionCall"]);
const finishReasons = ["STOP", "MAX_TOKENS", "SAFETY"];

/** Throws unless the frames are one whole stream without an error: each piece is a `GenerateContentResponse`. */
export function checkGeminiStream(frames: SseFrame[], asked: Conversation): void {
  const pieces = frames.filter(({ data }) => data !== undefined);
  let id: unknown;
  pieces.forEach((frame, at) => {
    const check: (holds: unknown, sentence: string) => asserts holds = (holds, sentence) => {
      if (!holds) throw new Error(`piece ${at}: ${sentence}\n${frame.data}`);
    };
    check(frame.event === undefined, "Google's events have no names");
    const piece = jsonOf(frame);
    check(isObject(piece), "it is no JSON object");
    check(!("error" in piece), "an error in a stream that ends well");
    check(piece.modelVersion === asked.model, "it names another model than was asked");
    id ??= piece.responseId;
    check(typeof id === "string" && id !== "" && piece.responseId === id, "its id is missing or changed");
    check(Array.isArray(piece.candidates) && piece.candidates.length === 1, "it has not one candidate");
    const [candidate] = piece.candidates;
    check(isObject(candidate) && candidate.index === 0, "its candidate is not the first");
    check(isObject(candidate.content) && candidate.content.role === "model", "its content is not the model's");
    const { parts } = candidate.content;
    // A chat session of @google/genai forgets the whole turn if one piece has no parts.
    check(Array.isArray(parts) && parts.length > 0, "it has no parts");
    for (const part of parts) {
      check(isObject(part) && Object.keys(part).length > 0, "an empty part");
      check(
        Object.keys(part).every((key) => partKeys.has(key)),
        "a part of an unknown kind",
      );
      check("text" in part !== "functionCall" in part, "a part is a text or a call");
      if ("functionCall" in part) {
        const call = part.functionCall;
        check(isObject(call) && typeof call.name === "string" && isObject(call.args), "a call without name or args");
        check(typeof call.id === "string" && call.id !== "", "a call without an id");
      }
      const signature = part.thoughtSignature;
      check(
        signature === undefined || /^[A-Za-z0-9+/]+={0,2}$/.test(String(signature)),
        "a signature that is not base64",
      );
    }
    const isLast = at === pieces.length - 1;
    check("finishReason" in candidate === isLast, "the last piece alone has a finish reason");
    if (!isLast) return;
    check(finishReasons.includes(String(candidate.finishReason)), "an unknown finish reason");
    check(isObject(piece.usageMetadata) && typeof piece.usageMetadata.totalTokenCount === "number", "no usage");
  });
  if (pieces.length === 0) throw new Error("no piece");
}
