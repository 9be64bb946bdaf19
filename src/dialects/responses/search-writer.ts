/** Writes the items of web searches that ran while the model answered. */
import { isObject } from "../../lib/json";
import type { JsonObject } from "../hub/conversation";
import { textIn } from "../hub/json";
import { searches } from "../hub/searches";
import type { ServerToolCall, ServerToolResult } from "../hub/server-tools";
import type { ShownItem, Wire } from "./item-writer";

const callType = searches["web-search"].responses.call;

/**
 * Writes searches as items, each from its call to its result. Clients read one item at a time: a call that comes before
 * the result of another waits for it.
 */
export function searchWriter(wire: Wire, add: (prefix: string, item: JsonObject) => ShownItem, withSources: boolean) {
  let open: ShownItem | undefined;
  const waiting: ServerToolCall[] = [];
  const send = (event: string, { id, index }: ShownItem) =>
    wire.send(`response.${callType}.${event}`, { item_id: id, output_index: index });
  const begin = ({ input }: ServerToolCall) => {
    const action = { type: "search", query: textIn(input.query) };
    open = add("ws", { type: callType, status: "in_progress", action });
    send("in_progress", open);
    send("searching", open);
  };
  const end = (shown: ShownItem, status: string) => {
    shown.item.status = status;
    wire.send("response.output_item.done", { output_index: shown.index, item: shown.item });
    open = undefined;
    const next = waiting.shift();
    if (next) begin(next);
  };
  return {
    call(call: ServerToolCall) {
      if (open) waiting.push(call);
      else begin(call);
    },
    /** The result of the first call that has none. */
    result({ output }: ServerToolResult) {
      if (!open) return;
      if (output.kind === "error") return end(open, "failed");
      const pages = output.kind === "pages" ? output.pages : [];
      const sources = pages.map(({ url }) => ({ type: "url", url }));
      if (withSources && isObject(open.item.action)) open.item.action = { ...open.item.action, sources };
      send("completed", open);
      end(open, "completed");
    },
    /** Marks the search that still runs as failed. */
    fail() {
      if (open) open.item.status = "failed";
    },
  };
}
