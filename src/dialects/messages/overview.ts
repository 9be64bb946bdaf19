/** The roles in a messages request, and whether it contains an image. */
import { isObject } from "../../json";
import type { JsonObject } from "../hub/conversation";
import { type Overview, type OverviewMessage, overviewOf, type PromptHead } from "../overview";
import { blocksOf, objectsIn, without, withoutBilling } from "./traverse";

const speakers = new Map<unknown, OverviewMessage["by"]>([
  ["system", "system"],
  ["assistant", "model"],
]);

const types = {
  text: new Set(["text"]),
  image: new Set(["image"]),
  /** `tool_result`, and results of typed tools such as `mcp_tool_result`. */
  isResult: (type: unknown) => typeof type === "string" && /(?:^|_)tool_result$/.test(type),
};

export function overview({ messages, tools, tool_choice }: JsonObject): Overview {
  const whole = overviewOf(
    objectsIn(messages).map(({ role, content }) => ({ by: speakers.get(role) ?? "user", content })),
    types,
  );
  const [tool, ...others] = objectsIn(tools);
  if (!tool || others.length > 0 || tool.type == null || tool.type === "custom") return whole;
  const isForced = isObject(tool_choice) && tool_choice.type === "tool" && tool_choice.name === tool.name;
  return isForced ? { ...whole, isForcedTool: true } : whole;
}

export function promptHead({ tools, system, messages }: JsonObject): PromptHead {
  const unmarked = (blocks: JsonObject[]) => blocks.map((block) => without(block, ["cache_control"]));
  return {
    tools: unmarked(objectsIn(tools)),
    system: unmarked(blocksOf(withoutBilling(system))),
    first: unmarked(blocksOf(objectsIn(messages)[0]?.content)),
  };
}
