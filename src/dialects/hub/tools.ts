/** Tools as every upstream of a dialect takes them: each said once, with a schema that is not refused. */
import { ProxyError } from "../../errors";
import { isObject, isSameJson } from "../../json";
import type { Conversation, Dialect, ForeignTool, JsonObject, Tool } from "./conversation";
import { fitSchema, type SchemaFixup } from "./tool-schema";

/** Whose endpoints refuse what: OpenAI's compile patterns. */
const schemaFixups: Record<Dialect, readonly SchemaFixup[]> = {
  chat: ["schema-pattern", "schema-union", "schema-type"],
  responses: ["schema-pattern", "schema-union", "schema-type"],
  messages: ["schema-union", "schema-type"],
};

/** @returns The very same tools where nothing had to change. */
export function fitTools(tools: Tool[], target: Dialect): { tools: Tool[]; fixups: string[]; dropped: string[] } {
  const fixups = new Set<string>();
  const dropped = new Set<string>();
  const fitted = oneEach(tools, target, fixups).map((tool): Tool => {
    if (tool.kind !== "function" || !isObject(tool.schema)) return tool;
    const { schema, fixups: applied, dropped: lost } = fitSchema(tool.schema, schemaFixups[target]);
    if (applied.length === 0) return tool;
    for (const name of applied) fixups.add(name);
    for (const name of lost) dropped.add(name);
    const { strict, ...plain } = tool;
    // What a schema is held to, its merged form may not allow.
    const isLooser = strict && applied.includes("schema-union");
    if (isLooser) dropped.add("strict");
    return isLooser || strict === undefined ? { ...plain, schema } : { ...plain, schema, strict };
  });
  const isSame = fitted.length === tools.length && fitted.every((tool, at) => tool === tools[at]);
  return { tools: isSame ? tools : fitted, fixups: [...fixups], dropped: [...dropped] };
}

/**
 * For an upstream that has no word for a choice among some of the tools: the others are left out.
 * @throws ProxyError `invalid_request` where one must be called and none is left.
 */
export function onlyAllowed(conversation: Conversation): Conversation {
  const { allowedTools, ...others } = conversation;
  if (!allowedTools) return conversation;
  const tools = conversation.tools.filter((tool) =>
    allowedTools.some((allowed) =>
      typeof allowed === "string" ? tool.kind !== "foreign" && tool.name === allowed : isMeant(allowed, tool),
    ),
  );
  if (tools.length === 0 && conversation.toolChoice === "required") {
    const sentence = "`tool_choice` demands a call of tools that this request does not bring.";
    throw new ProxyError("invalid_request", sentence, { param: "tool_choice", code: "unsupported_value" });
  }
  return { ...others, tools };
}

/** A choice names a tool of the service's own by its type, and by a label where there are several. */
function isMeant({ value }: ForeignTool, tool: Tool): boolean {
  const own = tool.kind === "foreign" ? tool.value : undefined;
  return isObject(value) && isObject(own) && Object.keys(value).every((key) => isSameJson(value[key], own[key]));
}

/** What a retry changes of a refused request's tools. */
export interface FittedWire {
  /** Top-level members to set. */
  set: JsonObject;
  fixups: string[];
  dropped: string[];
}

/**
 * The same for a request of the dialect's own, whose schema was refused.
 * @param each Goes through the tools' schemas and gives the members to set, undefined where none has changed.
 * @returns Undefined where there is nothing to mend.
 */
export function fitWire(
  target: Dialect,
  each: (fit: (schema: unknown) => unknown) => JsonObject | undefined,
): FittedWire | undefined {
  const fixups = new Set<string>();
  const dropped = new Set<string>();
  const set = each((schema) => {
    if (!isObject(schema)) return schema;
    const fitted = fitSchema(schema, schemaFixups[target]);
    for (const name of fitted.fixups) fixups.add(name);
    for (const name of fitted.dropped) dropped.add(name);
    return fitted.schema;
  });
  return set && { set, fixups: [...fixups], dropped: [...dropped] };
}

/** A tool that is said again word for word is one tool: "Tool names must be unique." */
function oneEach(tools: Tool[], target: Dialect, fixups: Set<string>): Tool[] {
  const known = new Map<string, Tool>();
  const isAgain = (tool: Tool): boolean => {
    if (tool.kind === "foreign") return false;
    const said = known.get(tool.name);
    if (!said) known.set(tool.name, tool);
    // Where tools can be brought along in the middle they may be said again.
    return said !== undefined ? isSameJson(said, tool) : tool.isRepeated === true && target !== "responses";
  };
  return tools.filter((tool) => {
    const again = isAgain(tool);
    if (again) fixups.add("tool-repeated");
    return !again;
  });
}
