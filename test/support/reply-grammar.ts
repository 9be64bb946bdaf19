/** The grammar of reply events, and what a reply comes to when its spelling is taken away. */
import { expect } from "bun:test";
import type { Conversation, JsonObject } from "../../src/dialects/hub/conversation";
import type { Block, ReplyEvent, Usage } from "../../src/dialects/hub/reply";
import { unpackSignature } from "../../src/dialects/hub/signature";

/** What a dialect has no word for: the comparison leaves it out. */
export type Lack = "stop" | "stop-sequence" | "refusal-mark" | "format-name" | "parallel-tools" | "hidden-thoughts";

/** Fails unless the events are `[ start ( block-start block-delta* block-end | usage )* ] ( finish | error )`. */
function checkReply(events: ReplyEvent[]): void {
  let open = false;
  events.forEach((event, index) => {
    const last = index === events.length - 1;
    const where = `event ${index} (${event.type})`;
    if ((event.type === "finish" || event.type === "error") !== last) throw new Error(`${where} is in the wrong place`);
    if (event.type === "error") return;
    if ((event.type === "start") !== (index === 0)) throw new Error(`${where}: start comes first and once`);
    if (event.type === "block-start" && open) throw new Error(`${where}: a block is open already`);
    if ((event.type === "block-delta" || event.type === "block-end") && !open)
      throw new Error(`${where}: no block is open`);
    if ((event.type === "usage" || event.type === "finish") && open) throw new Error(`${where}: a block is still open`);
    if (event.type === "block-delta" && event.text === "") throw new Error(`${where} says nothing`);
    if (event.type === "block-start") open = true;
    if (event.type === "block-end") open = false;
  });
  if (events.length === 0) throw new Error("no terminal event");
  if (open && events.at(-1)?.type === "error") throw new Error("the error left a block open");
}

/** The events' usage; later numbers replace earlier ones. A number that was not reported is undefined, never 0. */
export function usageOf(events: Iterable<ReplyEvent>): Partial<Usage> {
  const total: Partial<Usage> = {};
  for (const event of events) if (event.type === "usage") Object.assign(total, event.usage);
  return total;
}

interface Meaning {
  blocks: JsonObject[];
  usage: Partial<Usage>;
  end: JsonObject;
}

/** Blocks with their whole text, the numbers, the end: without ids, the model's name, raw words and bags. */
export function meaningOf(events: ReplyEvent[], lacks: ReadonlySet<Lack> = new Set()): Meaning {
  checkReply(events);
  const blocks: JsonObject[] = [];
  let text = "";
  let end: JsonObject = {};
  for (const event of events) {
    if (event.type === "block-start") {
      text = "";
      blocks.push(plain(event.block, lacks));
    } else if (event.type === "block-delta") text += event.text;
    else if (event.type === "block-end") {
      const block = blocks.at(-1)!;
      // A call without arguments is spelt `{}` or not at all.
      block.text = block.kind === "tool-call" && text === "" ? "{}" : text;
      if (event.signature) block.signature = unpackSignature(event.signature.value, event.signature.dialect).value;
    } else if (event.type === "error") end = { type: "error" };
    else if (event.type === "finish") {
      const { reason, stopSequence } = event;
      if (lacks.has("stop-sequence") && reason === "stop-sequence") end = { type: "finish", reason: "stop" };
      else end = { type: "finish", reason, ...(stopSequence === undefined ? {} : { stopSequence }) };
    }
  }
  return { blocks, usage: usageOf(events), end };
}

function plain(block: Block, lacks: ReadonlySet<Lack>): JsonObject {
  const kept: JsonObject = { ...block };
  delete kept.extras;
  if (lacks.has("refusal-mark")) delete kept.refusal;
  return kept;
}

/** Numbers only some dialects tell; they must agree where both do. */
const optionalNumbers = ["reasoning", "cacheWrite", "nanoCredits"] as const;

export function expectSameReply(
  actual: ReplyEvent[],
  expected: ReplyEvent[],
  lacks: ReadonlySet<Lack> = new Set(),
): void {
  const [found, wanted] = [meaningOf(actual, lacks), meaningOf(expected, lacks)];
  for (const key of optionalNumbers)
    if (found.usage[key] === undefined || wanted.usage[key] === undefined) {
      delete found.usage[key];
      delete wanted.usage[key];
    }
  expect(found).toEqual(wanted);
}

/** The conversation without bags, ids of proofs and the model's name. */
export function plainConversation(conversation: Conversation, lacks: ReadonlySet<Lack> = new Set()): JsonObject {
  const plainValue = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(plainValue);
    if (typeof value !== "object" || value === null) return value;
    return Object.fromEntries(
      Object.entries(value)
        .filter(([key, member]) => key !== "extras" && key !== "isInstructions" && member !== undefined)
        .map(([key, member]) => [key, key === "signature" ? plainSignature(member) : plainValue(member)]),
    );
  };
  const kept = plainValue(conversation) as JsonObject;
  kept.model = "";
  if (lacks.has("stop")) delete kept.stop;
  if (lacks.has("parallel-tools")) delete kept.parallelTools;
  // A client that has to ask for thoughts does so in these scenarios; the others are shown them without.
  if (lacks.has("hidden-thoughts") && kept.reasoning) delete (kept.reasoning as JsonObject).summary;
  if (lacks.has("format-name") && kept.format) kept.format = { schema: (kept.format as JsonObject).schema };
  return kept;
}

function plainSignature(signature: unknown): unknown {
  const { dialect, value } = signature as { dialect: "chat"; value: string };
  return unpackSignature(value, dialect).value;
}
