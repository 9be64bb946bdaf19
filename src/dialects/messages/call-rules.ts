/** Rules about calls and their results: which belong together, and where they stand. */
import { type CallPiece, lostResultHeading, ownCallIds, pairCalls } from "../hub/call-pairs";
import type { JsonObject } from "../hub/conversation";
import { mapped } from "../hub/lists";
import { blocksOf, changed, objectsIn } from "./traverse";

/**
 * Whether each call has one result at the beginning of the message after it, and no result is without a call: as in nearly
 * all histories, which the rules about results leave as they are.
 */
function arePaired(messages: JsonObject[]): boolean {
  const open = new Set<unknown>();
  for (const { role, content } of messages) {
    let mayAnswer = role !== "assistant";
    for (const { type, id, tool_use_id } of objectsIn(content))
      if (type === "tool_result") {
        if (!mayAnswer || !open.delete(tool_use_id)) return false;
      } else if (role === "assistant" && type === "tool_use") open.add(id);
      else mayAnswer = false;
    if (role !== "assistant" && open.size > 0) return false;
  }
  return open.size === 0;
}

/** A message as the rules see it. */
interface Paired {
  message: JsonObject;
  blocks: JsonObject[];
  /** The blocks as calls and results with their partners; undefined for any other block. */
  pieces: (CallPiece<JsonObject> | undefined)[];
  /** The calls that this message must answer: those before it. Consecutive messages of the model are one turn. */
  calls: CallPiece<JsonObject>[];
}

/** The messages, and after them the calls that the next one would have to answer. */
function pairsIn(messages: JsonObject[]): { read: Paired[]; open: CallPiece<JsonObject>[] } {
  const history: (CallPiece<JsonObject> | undefined)[] = [];
  let open: CallPiece<JsonObject>[] = [];
  const read = messages.map((message): Paired => {
    const isModel = message.role === "assistant";
    const blocks = blocksOf(message.content);
    const pieces = blocks.map((item): CallPiece<JsonObject> | undefined => {
      if (isModel) return item.type === "tool_use" ? { kind: "call", id: item.id, item } : undefined;
      return item.type === "tool_result" ? { kind: "result", id: item.tool_use_id, item } : undefined;
    });
    for (const piece of pieces) if (!isModel || piece) history.push(piece);
    if (!isModel && pieces.length === 0) history.push(undefined);
    const calls = isModel ? [] : open;
    if (!isModel) open = [];
    else for (const piece of pieces) if (piece) open.push(piece);
    return { message, blocks, pieces, calls };
  });
  pairCalls(history);
  return { read, open };
}

/** "`tool_use` ids must be unique", in the whole conversation (anthropics/claude-code#28515, 2026-02). */
export function repeatedCallIds(body: JsonObject): JsonObject | undefined {
  const messages = objectsIn(body.messages);
  if (areUnique(messages)) return undefined;
  const { read } = pairsIn(messages);
  const own = ownCallIds(read.flatMap(({ pieces }) => pieces));
  const renamed = read.map(({ message, blocks, pieces }) => {
    const content = mapped(blocks, (block, at) => {
      const id = pieces[at] && own.get(pieces[at]);
      return id === undefined ? block : { ...block, [block.type === "tool_use" ? "id" : "tool_use_id"]: id };
    });
    return content === blocks ? message : { ...message, content };
  });
  return { messages: renamed };
}

function areUnique(messages: JsonObject[]): boolean {
  const ids = new Set<unknown>();
  for (const { role, content } of messages)
    if (role === "assistant")
      for (const { type, id } of objectsIn(content))
        if (type === "tool_use") {
          if (ids.has(id)) return false;
          ids.add(id);
        }
  return true;
}

/** Results must come first in the message after their calls: late results are moved there. */
export function toolResultOrder(body: JsonObject): JsonObject | undefined {
  const messages = objectsIn(body.messages);
  if (arePaired(messages)) return undefined;
  const { read } = pairsIn(messages);
  const moved = new Set<unknown>();
  const brought = read.map(({ pieces, calls }) => {
    const settled = new Set(pieces.slice(0, firstOther(pieces)));
    const late = calls.flatMap(({ partner }) => (partner && !settled.has(partner) ? [partner] : []));
    for (const result of late) moved.add(result);
    return late.map(({ item }) => item);
  });
  if (moved.size === 0) return undefined;

  const ordered = read.flatMap<JsonObject>(({ message, blocks, pieces }, index) => {
    const late = brought[index]!;
    const stayed = blocks.filter((_, at) => !moved.has(pieces[at]));
    if (late.length === 0 && stayed.length === blocks.length) return [message];
    const leading = firstOther(pieces.filter((piece) => !moved.has(piece)));
    const content = [...stayed.slice(0, leading), ...late, ...stayed.slice(leading)];
    return content.length === 0 ? [] : [{ ...message, content }];
  });
  return { messages: ordered };
}

const firstOther = (pieces: readonly unknown[]): number => {
  const found = pieces.indexOf(undefined);
  return found === -1 ? pieces.length : found;
};

/** A call without a result, for example after an interruption, gets a result that says so. */
export function missingToolResult(body: JsonObject): JsonObject | undefined {
  const messages = objectsIn(body.messages);
  if (arePaired(messages)) return undefined;
  const { read, open } = pairsIn(messages);
  const missing = (calls: CallPiece<JsonObject>[]) => calls.flatMap((call) => (call.partner ? [] : [noAnswer(call)]));
  const answered = mapped(messages, (message, index) => {
    const { calls, blocks } = read[index]!;
    const content = missing(calls);
    return content.length === 0 ? message : { ...message, content: [...content, ...blocks] };
  });
  const last = missing(open);
  if (last.length > 0) return { messages: [...answered, { role: "user", content: last }] };
  return changed("messages", messages, answered);
}

const noAnswer = ({ id }: CallPiece<JsonObject>): JsonObject => ({
  type: "tool_result",
  tool_use_id: id,
  content: "The call was interrupted; there is no result.",
  is_error: true,
});

/**
 * A result without a call is refused, for example in a shortened history, and so is a second result of a call. What they say
 * becomes text in their place, but after the results that come first.
 */
export function orphanToolResult(body: JsonObject): JsonObject | undefined {
  const messages = objectsIn(body.messages);
  if (arePaired(messages)) return undefined;
  const { read } = pairsIn(messages);
  const after = mapped(messages, (message, index) => {
    const { blocks, pieces } = read[index]!;
    const results: JsonObject[] = [];
    const others: JsonObject[] = [];
    let isChanged = false;
    for (const [at, block] of blocks.entries())
      if (block.type !== "tool_result") others.push(block);
      else if (pieces[at]?.partner) results.push(block);
      else {
        isChanged = true;
        for (const said of lostResult(block)) others.push(said);
      }
    return isChanged ? { ...message, content: [...results, ...others] } : message;
  });
  return changed("messages", messages, after);
}

/** Blocks of a result that stand by themselves too; others are written out. */
const ownBlocks: ReadonlySet<unknown> = new Set(["text", "image", "document", "search_result"]);

function lostResult({ tool_use_id, content, cache_control }: JsonObject): JsonObject[] {
  const inner = blocksOf(content).filter(({ text }) => text !== "");
  const blocks = [
    { type: "text", text: lostResultHeading(tool_use_id) },
    ...inner.map((block) => (ownBlocks.has(block.type) ? block : { type: "text", text: JSON.stringify(block) })),
  ];
  return cache_control === undefined ? blocks : [...blocks.slice(0, -1), { ...blocks.at(-1), cache_control }];
}
