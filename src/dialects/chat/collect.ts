/** Collects a streamed chat completion into the body that a full reply would have. */
import { isObject, numberIn } from "../../lib/json";
import type { FramedBeat } from "../hub/beat";
import type { JsonObject } from "../hub/conversation";
import { setField, without } from "../hub/json";
import { callPieceIn } from "./calls";
import { textFields } from "./thinking";

/** Merges every field of every chunk: text and lists are joined, of other fields the last value wins. */
export class CollectedChat {
  readonly #choices = new Map<number, Choice>();
  readonly #members: JsonObject = {};
  #isBegun = false;

  read({ json: chunk }: FramedBeat): void {
    // A chunk without an id is Azure's content-filter notice, not part of the reply.
    const isOfReply = chunk.id !== "" || !this.#isBegun;
    for (const [key, value] of Object.entries(chunk)) {
      if (!isOfReply || ofChunk.has(key) || value == null || value === "") continue;
      setField(this.#members, key, value);
      this.#isBegun = true;
    }
    if (!Array.isArray(chunk.choices)) return;
    for (const choice of chunk.choices) if (isObject(choice)) addTo(this.#choices, choice);
  }

  body(): JsonObject {
    const choices = [...this.#choices].sort(([one], [other]) => one - other).map(([, choice]) => whole(choice));
    return { ...this.#members, object: "chat.completion", choices };
  }
}

/** Fields that belong to a chunk and not to the reply. */
const ofChunk = new Set(["object", "choices", "obfuscation"]);

interface Choice {
  members: JsonObject;
  message: JsonObject;
  /** By their indexes, which the normalizer gives in the order in which they begin. */
  calls: Map<unknown, JsonObject>;
}

function addTo(choices: Map<number, Choice>, { delta, ...members }: JsonObject): void {
  const index = numberIn(members.index) ?? 0;
  const choice: Choice = choices.get(index) ?? { members: {}, message: {}, calls: new Map() };
  choices.set(index, choice);
  // Several choices may be one reply: a later one may finish with `stop` after a call.
  if (choice.members.finish_reason === "tool_calls") delete members.finish_reason;
  for (const [key, value] of Object.entries(members))
    if (key === "logprobs") choice.members.logprobs = grown(choice.members.logprobs, value);
    else if (value != null || !Object.hasOwn(choice.members, key)) setField(choice.members, key, value);
  if (!isObject(delta)) return;
  for (const [key, piece] of Object.entries(without(delta, ["tool_calls"]))) {
    const before = choice.message[key];
    const joins = typeof before === "string" && typeof piece === "string" && textFields.includes(key);
    if (joins) setField(choice.message, key, before + piece);
    else if (piece != null || before === undefined) setField(choice.message, key, grown(before, piece));
  }
  if (Array.isArray(delta.tool_calls))
    for (const piece of delta.tool_calls) if (isObject(piece)) addCall(choice, piece);
}

function addCall({ calls }: Choice, { index, ...piece }: JsonObject): void {
  const call = calls.get(index);
  const { id, name, input } = callPieceIn(piece);
  if (!call) {
    // No call has begun.
    if (id === "" && name === "") return;
    const definition = isObject(piece.custom)
      ? { custom: { input: "", ...piece.custom } }
      : { function: { arguments: "", ...functionIn(piece) } };
    calls.set(index, { ...piece, ...definition });
    return;
  }
  if (id !== "") call.id ??= id;
  const [definition, key] = isObject(call.custom) ? [call.custom, "input"] : [call.function, "arguments"];
  if (!isObject(definition)) return;
  definition.name ||= name;
  definition[key] = `${definition[key] ?? ""}${input}`;
}

const functionIn = (piece: JsonObject): JsonObject => (isObject(piece.function) ? piece.function : {});

function whole({ members, message, calls }: Choice): JsonObject {
  const tool_calls = [...calls.values()];
  const content = message.content === "" && tool_calls.length > 0 ? null : (message.content ?? null);
  const finalMessage = { ...message, content, ...(tool_calls.length > 0 ? { tool_calls } : {}) };
  return { ...members, message: finalMessage };
}

/** Members of the older `function_call`, and of `audio`, whose texts come in pieces. */
const inPieces = new Set(["arguments", "data", "transcript"]);

/** Lists and objects that were made here, which may grow in place. Those of a chunk stay as they were sent. */
const ours = new WeakSet<object>();

/** Joins lists inside objects, and texts that come in pieces; replaces everything else. */
function grown(before: unknown, after: unknown): unknown {
  if (Array.isArray(before) && Array.isArray(after)) {
    const list = ours.has(before) ? before : [...before];
    for (const item of after) list.push(item);
    ours.add(list);
    return list;
  }
  if (!isObject(before) || !isObject(after)) return after ?? before ?? after;
  const both: JsonObject = ours.has(before) ? before : { ...before };
  for (const [key, value] of Object.entries(after)) {
    const earlier = both[key];
    const joins = typeof earlier === "string" && typeof value === "string" && inPieces.has(key);
    setField(both, key, joins ? earlier + value : grown(earlier, value));
  }
  ours.add(both);
  return both;
}
