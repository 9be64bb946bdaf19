/** What an upstream is known to send in a dialect, so that what is new can be noticed. */
import type { Shape } from "../../json-shape";
import type { JsonObject } from "./conversation";

export interface KnownNames {
  /** A full reply. */
  reply: Shape;
  /** By the type of the event; under "" where events have no type. */
  events: ReadonlyMap<string, Shape>;
  /** The type of an event. */
  typeOf(event: JsonObject): string;
}
