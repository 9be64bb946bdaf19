/**
 * Requests and replies in each dialect's own JSON around one JSON text that must arrive unchanged, from
 * `fixtures/copilot/calls.txt`: a request (`?`), one that needs a fixup (`!`), a full reply (`=`), and a stream.
 */
import type { Dialect } from "../../src/dialects/hub/conversation";
import { eventOf, filled, formsIn, type Given } from "./copilot-forms";

/** JSON text of a body, or of a part of it. */
type Json = string;

const forms = formsIn("calls");

function linesOf(dialect: Dialect, sign: string, value: Json, given: Given): Json[] {
  const { lines } = forms.find(({ title }) => title === dialect)!;
  const all = { value, quoted: JSON.stringify(value), ...given };
  return lines.flatMap((line) => (line.startsWith(sign) ? [filled(line.slice(2), all).replaceAll("⏎", "\n")] : []));
}

/**
 * A conversation with a call whose input is this object, and a tool whose schema holds it.
 * @param needsFixup With something that the proxy must change on its way to an upstream of the same dialect.
 */
export function requestOf(dialect: Dialect, model: string, value: Json, stream: boolean, needsFixup: boolean): Json {
  const schema = `{"type":"object","properties":{"a":{"type":"object","default":${value}}}}`;
  const usage = stream ? '"stream_options":{"include_usage":true},' : "";
  return linesOf(dialect, needsFixup ? "!" : "?", value, { model, schema, usage, stream: String(stream) })[0]!;
}

/** A full reply that calls the tool with this object. */
export const replyOf = (dialect: Dialect, model: string, value: Json): Json =>
  linesOf(dialect, "=", value, { model })[0]!;

/** The same as a stream, the input in these pieces. */
export const streamOf = (dialect: Dialect, model: string, pieces: readonly string[]): string =>
  [
    ...linesOf(dialect, "<", "", { model }),
    ...pieces.flatMap((piece, at) => linesOf(dialect, "*", piece, { model, at })),
    ...linesOf(dialect, ">", pieces.join(""), { model, at: pieces.length }),
  ]
    .map(eventOf)
    .join("");
