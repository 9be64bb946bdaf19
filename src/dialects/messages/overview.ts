/** The roles in a messages request, and whether it contains an image. */
import type { JsonObject } from "../hub/conversation";
import { type Overview, overviewOf, type Said } from "../overview";
import { objectsIn } from "./traverse";

const speakers = new Map<unknown, Said["by"]>([
  ["system", "system"],
  ["assistant", "model"],
]);

const types = {
  text: new Set(["text"]),
  image: new Set(["image"]),
  /** `tool_result`, and results of typed tools such as `mcp_tool_result`. */
  isResult: (type: unknown) => typeof type === "string" && /(?:^|_)tool_result$/.test(type),
};

export function overview({ messages }: JsonObject): Overview {
  return overviewOf(
    objectsIn(messages).map(({ role, content }) => ({ by: speakers.get(role) ?? "user", content })),
    types,
  );
}
