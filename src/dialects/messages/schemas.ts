/** The schemas of a Messages request: of its client's tools, and of the reply. */
import { isObject } from "../../lib/json";
import type { JsonObject } from "../hub/conversation";
import { without } from "../hub/json";
import { mapped } from "../hub/lists";
import type { OfferedFunction, SchemaPlaces } from "../hub/refused-schemas";
import { formatInWords } from "./limits";
import { changed, objectsIn } from "./traverse";

function mapFunctions(body: JsonObject, change: (offered: OfferedFunction) => OfferedFunction): JsonObject | undefined {
  const tools = objectsIn(body.tools);
  const after = mapped(tools, (tool, at) => {
    const { name, description, input_schema: schema, strict } = tool;
    if (schema === undefined) return tool;
    const offered = { place: `tools[${at}]`, name, description, schema, strict };
    const next = change(offered);
    if (next === offered) return tool;
    const described = next.description === undefined ? {} : { description: next.description };
    return { ...(next.strict === strict ? tool : without(tool, ["strict"])), ...described, input_schema: next.schema };
  });
  return changed("tools", tools, after);
}

/** Any draft but the newest is mended before it is sent (`output-schema`): what is still refused can only be said in words. */
function mapFormat(body: JsonObject, change: (schema: JsonObject) => JsonObject | undefined): JsonObject | undefined {
  const { output_config: config } = body;
  const format = isObject(config) ? config.format : undefined;
  if (!isObject(config) || !isObject(format) || !isObject(format.schema)) return undefined;
  return change(format.schema) ? undefined : formatInWords(body, format.schema);
}

export const schemas: SchemaPlaces = { mapFunctions, mapFormat };
