/** The schemas of a Responses request: of its functions, wherever a list of tools stands, and of the reply. */
import { isObject } from "../../lib/json";
import type { JsonObject } from "../hub/conversation";
import { filled, without } from "../hub/json";
import { mapped } from "../hub/lists";
import { wishForJson } from "../hub/output-schema";
import { describedAs, type OfferedFunction, type SchemaPlaces } from "../hub/refused-schemas";

type Change = (offered: OfferedFunction) => OfferedFunction;

function mapFunctions({ tools, input }: JsonObject, change: Change): JsonObject | undefined {
  const ofRequest = mapTools(tools, "tools", change);
  const items = Array.isArray(input)
    ? mapped(input as unknown[], (item, at) => {
        if (!isObject(item) || !Array.isArray(item.tools)) return item;
        const after = mapTools(item.tools, `input[${at}].tools`, change);
        return after === item.tools ? item : { ...item, tools: after };
      })
    : input;
  return filled({ ...(ofRequest === tools ? {} : { tools: ofRequest }), ...(items === input ? {} : { input: items }) });
}

/** Functions of the list, and of the namespaces in it. */
function mapTools(list: unknown, place: string, change: Change): unknown {
  if (!Array.isArray(list)) return list;
  return mapped(list as unknown[], (tool, at) => {
    if (!isObject(tool)) return tool;
    const here = `${place}[${at}]`;
    if (tool.type === "namespace") {
      const tools = mapTools(tool.tools, `${here}.tools`, change);
      return tools === tool.tools ? tool : { ...tool, tools };
    }
    const { name, description, parameters: schema, strict } = tool;
    if (schema === undefined) return tool;
    const offered = { place: here, name, description, schema, strict };
    const next = change(offered);
    if (next === offered) return tool;
    return { ...tool, ...describedAs(offered, next), parameters: next.schema };
  });
}

/** Words for a schema stand at the end of the instructions. */
function mapFormat(body: JsonObject, change: (schema: JsonObject) => JsonObject | undefined): JsonObject | undefined {
  const { text, instructions } = body;
  const format = isObject(text) ? text.format : undefined;
  if (!isObject(text) || !isObject(format) || !isObject(format.schema)) return undefined;
  const after = change(format.schema);
  if (after === format.schema) return undefined;
  if (after) return { text: { ...text, format: { ...format, schema: after } } };
  const before = typeof instructions === "string" && instructions !== "" ? [instructions] : [];
  return {
    text: filled(without(text, ["format"])),
    instructions: [...before, wishForJson(format.schema)].join("\n\n"),
  };
}

export const schemas: SchemaPlaces = { mapFunctions, mapFormat };
