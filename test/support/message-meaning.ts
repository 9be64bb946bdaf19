/** A request of Messages without its choices of spelling. */
import type { JsonObject } from "../../src/dialects/hub/conversation";

/** Strings are blocks, neighbours of one voice are one, and members that say the default are not there. */
export function messageMeaning(body: JsonObject): JsonObject {
  const said: JsonObject[] = [];
  for (const { role, content, ...rest } of body.messages as JsonObject[]) {
    const last = said.at(-1);
    const alone = Object.keys(rest).length > 0;
    if (!alone && last?.role === role && !last?.alone)
      last!.content = [...blocksOf(last!.content), ...blocksOf(content)];
    else said.push({ role, content: blocksOf(content), ...rest, ...(alone && { alone }) });
  }
  const meant: JsonObject = {
    ...body,
    model: "",
    messages: said.map((each) => ({ ...each, content: resultsInOrder(each.content as JsonObject[]) })),
    system: blocksOf(body.system),
    stream: body.stream || undefined,
    tools: Array.isArray(body.tools) && body.tools.length === 0 ? undefined : body.tools,
  };
  return Object.fromEntries(Object.entries(meant).filter(([, value]) => value !== undefined));
}

function blocksOf(content: unknown): JsonObject[] {
  if (typeof content === "string") return content === "" ? [] : [{ type: "text", text: content }];
  return ((content ?? []) as JsonObject[]).map((block) =>
    block.type === "tool_result" ? { ...block, content: blocksOf(block.content) } : block,
  );
}

/** Results of parallel calls may come in any order. */
function resultsInOrder(content: JsonObject[]): JsonObject[] {
  const isResult = ({ type }: JsonObject) => type === "tool_result";
  const results = content.filter(isResult).sort((a, b) => (String(a.tool_use_id) < String(b.tool_use_id) ? -1 : 1));
  return [...results, ...content.filter((each) => !isResult(each))];
}
