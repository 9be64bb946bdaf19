/** Rules about calls and their results: which belong together, and where they stand. */
import { type CallPiece, isAnswered, lostResultHeading, ownCallIds, pairCalls } from "../hub/call-pairs";
import type { JsonObject } from "../hub/conversation";
import { isSameList, mapped } from "../hub/lists";
import { blocksOf, changed, eachBlock, objectsIn } from "./traverse";

type Piece = CallPiece<JsonObject>;

/** The calls and results; undefined for another block of the user, and for the end of a message. */
function historyOf(messages: JsonObject[]): (Piece | undefined)[] {
  return messages.flatMap(({ role, content }): (Piece | undefined)[] => {
    const blocks = blocksOf(content);
    if (role !== "assistant")
      return [...blocks.map((block) => (isResult(block) ? resultOf(block) : undefined)), undefined];
    return blocks.flatMap((item): Piece[] => {
      if (item.type === "tool_use") return [{ kind: "call", id: item.id, item }];
      // A result of the model answers no call.
      return isResult(item) ? [{ kind: "result", id: item, item }] : [];
    });
  });
}

const isResult = ({ type }: JsonObject): boolean => type === "tool_result";
const resultOf = (item: JsonObject): Piece => ({ kind: "result", id: item.tool_use_id, item });

/** A message, and the calls that it must answer: those before it. Consecutive messages of the model are one turn. */
interface Paired {
  message: JsonObject;
  blocks: JsonObject[];
  calls: Piece[];
}

/**
 * The messages, and after them one for the calls that the last ones leave open. Undefined if each call has its result at the
 * beginning of the message after it, and no result is without a call.
 */
function pairsIn(messages: JsonObject[]): { read: Paired[]; pairs: Map<JsonObject, Piece> } | undefined {
  const history = historyOf(messages);
  if (isAnswered(history)) return undefined;
  const pairs = pairCalls(history);
  let open: Piece[] = [];
  const read = [...messages, { role: "user", content: [] }].map((message: JsonObject): Paired => {
    const blocks = blocksOf(message.content);
    if (message.role !== "assistant") {
      const calls = open;
      open = [];
      return { message, blocks, calls };
    }
    for (const block of blocks) if (block.type === "tool_use") open.push(pairs.get(block)!);
    return { message, blocks, calls: [] };
  });
  return { read, pairs };
}

/** "`tool_use` ids must be unique", in the whole conversation (anthropics/claude-code#28515, 2026-02). */
export function repeatedCallIds(body: JsonObject): JsonObject | undefined {
  const own = ownCallIds(historyOf(objectsIn(body.messages)));
  if (own.size === 0) return undefined;
  return eachBlock(body, (block) => {
    const id = own.get(block);
    return id === undefined ? block : { ...block, [isResult(block) ? "tool_use_id" : "id"]: id };
  });
}

/** Results must come first in the message after their calls: late results are moved there. */
export function toolResultOrder(body: JsonObject): JsonObject | undefined {
  const read = pairsIn(objectsIn(body.messages))?.read.slice(0, -1) ?? [];
  const late = read.map(({ blocks, calls }) => {
    const settled = new Set(blocks.slice(0, leadingIn(blocks)));
    return calls.flatMap(({ partner }) => (partner && !settled.has(partner.item) ? [partner.item] : []));
  });
  const moved = new Set(late.flat());
  if (moved.size === 0) return undefined;
  const ordered = read.flatMap<JsonObject>(({ message, blocks }, index) => {
    const brought = late[index]!;
    const stayed = blocks.filter((block) => !moved.has(block));
    if (brought.length === 0 && stayed.length === blocks.length) return [message];
    const leading = leadingIn(stayed);
    const content = [...stayed.slice(0, leading), ...brought, ...stayed.slice(leading)];
    return content.length === 0 ? [] : [{ ...message, content }];
  });
  return { messages: ordered };
}

/** How many results the blocks begin with. */
const leadingIn = (blocks: readonly JsonObject[]): number => {
  const found = blocks.findIndex((block) => !isResult(block));
  return found === -1 ? blocks.length : found;
};

/** A call without a result, for example after an interruption, gets a result that says so. */
export function missingToolResult(body: JsonObject): JsonObject | undefined {
  const messages = objectsIn(body.messages);
  const answered = pairsIn(messages)?.read.map(({ message, blocks, calls }) => {
    const missing = calls.flatMap((call) => (call.partner ? [] : [noAnswer(call)]));
    return missing.length === 0 ? message : { ...message, content: [...missing, ...blocks] };
  });
  if (!answered) return undefined;
  if (blocksOf(answered.at(-1)?.content).length === 0) answered.pop();
  return isSameList(answered, messages) ? undefined : { messages: answered };
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
  const paired = pairsIn(messages);
  if (!paired) return undefined;
  const isLost = (block: JsonObject) => isResult(block) && !paired.pairs.get(block)?.partner;
  const after = mapped(messages, (message, index) => {
    const { blocks } = paired.read[index]!;
    if (!blocks.some(isLost)) return message;
    const results = blocks.filter((block) => isResult(block) && !isLost(block));
    const others = blocks.flatMap((block) => (isLost(block) ? lostResult(block) : isResult(block) ? [] : [block]));
    return { ...message, content: [...results, ...others] };
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
