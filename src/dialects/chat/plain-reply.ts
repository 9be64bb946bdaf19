/** A plain full reply, one text and nothing else, is read without the parts that only other replies need. */
import { isObject } from "../../json";
import type { JsonObject } from "../hub/conversation";
import type { ReplyEvent } from "../hub/reply";
import { errorIn } from "./errors";
import { decodeUsage } from "./usage";

/** What `decodeReply` gives of a plain reply, without the events of its text; undefined for any other reply. */
export function summarizeReply(body: JsonObject): ReplyEvent[] | undefined {
  const { id, model, choices } = body;
  if (!Array.isArray(choices) || choices.length !== 1 || errorIn(body)) return undefined;
  const [choice] = choices;
  if (!isObject(choice) || !isObject(choice.message) || !isPlain(choice.message)) return undefined;
  const { finish_reason: reason } = choice;
  if (reason !== "stop" && reason !== "length") return undefined;
  const usage = decodeUsage(body);
  return [
    { type: "start", id: typeof id === "string" ? id : "", model: typeof model === "string" ? model : "" },
    ...(Object.keys(usage).length > 0 ? [{ type: "usage" as const, usage }] : []),
    { type: "finish", reason, raw: reason },
  ];
}

function isPlain(message: JsonObject): boolean {
  for (const name of Object.keys(message)) {
    const value = message[name];
    const isExpected =
      name === "content" || name === "padding" ? typeof value === "string" : name === "role" || value == null;
    if (!isExpected) return false;
  }
  return true;
}
