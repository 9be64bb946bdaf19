/** What an upstream is known to send in a dialect, so that what is new can be noticed. */
import { type Shape, shape } from "../../lib/json-shape";
import type { JsonObject } from "./conversation";

export interface KnownNames {
  /** A full reply. */
  reply: Shape;
  /** By the type of the event; under "" where events have no type. */
  events: ReadonlyMap<string, Shape>;
  /** The type of an event. */
  typeOf(event: JsonObject): string;
}

/** What Copilot says a reply has cost, in every dialect. */
export const charge = "copilot_usage{total_nano_aiu token_details{batch_size cost_per_batch token_count token_type}}";

/** @param events The members of each type of event, beside its type. */
export const knownNamesOf = (reply: string, events: Readonly<Record<string, string>>): KnownNames => ({
  reply: shape(reply),
  events: new Map(Object.entries(events).map(([type, members]) => [type, shape(`type! ${members}`)])),
  typeOf: ({ type }) => (typeof type === "string" ? type : ""),
});
