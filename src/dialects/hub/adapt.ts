/**
 * Adapts a conversation to what every upstream of a dialect accepts, and maps the reply back to what the client sent:
 * freeform tools become functions; names and ids are reduced to the characters that every upstream allows, and names of tools'
 * properties to those that this one allows.
 */

import { quoted, words } from "../../lib/errors";
import { isObject, parseJson } from "../../lib/json";
import { joined, type Stage } from "../../lib/net/stream/stream";
import type { Conversation, Dialect, FreeformTool, FunctionTool, Part, Tool, Turn } from "./conversation";
import { showForeign } from "./foreign";
import { refuse } from "./json";
import { type Notes, unnoted } from "./notes";
import { MemberRenamer, type RenamedProperties, renameMembers } from "./property-names";
import type { ReplyEvent } from "./reply";
import { asFunctionCalls } from "./server-turns";
import { changeTexts } from "./text-changes";
import { fitFormat, vendorRow } from "./tool-schema";
import { countTools, fitTools, largestGroups, namesOf } from "./tools";
import { upstreamFacts } from "./upstream-facts";
import { wrapFormat } from "./wrapped-format";

export interface Adapted {
  /** The same object if nothing had to change. */
  conversation: Conversation;
  /** Restores the client's tool names and freeform inputs in the reply's calls; undefined where it has nothing to restore. */
  restore?: Stage<ReplyEvent, ReplyEvent>;
}

/** What the strictest upstream accepts as a tool name or a call id. */
const word = /^[a-zA-Z0-9_-]{1,64}$/;

/**
 * @param vendor Who made the model, as in the catalogue.
 * @throws ProxyError `invalid_request` when there are more tools than the target accepts, or nothing is left of a turn.
 */
export function adapt(request: Conversation, target: Dialect, vendor: string, notes = unnoted): Adapted {
  const fitted = fitFormat(request, target, vendor, notes);
  const wrapped = wrapFormat(fitted, target);
  if (!wrapped) return adaptNames(fitted, target, vendor, notes);
  notes.addFixup("schema-wrapped");
  const { conversation, restore } = adaptNames({ ...fitted, format: wrapped.format }, target, vendor, notes);
  return { conversation, restore: joined(wrapped.restore, restore) };
}

function adaptNames(request: Conversation, target: Dialect, vendor: string, notes: Notes): Adapted {
  const fitted = fitTools(request.tools, target, vendor, notes);
  const { renamed } = fitted;
  const turns = asFunctionCalls(showForeign(request.turns, target, notes));
  const isSame = fitted.tools === request.tools && turns === request.turns;
  const conversation = isSame ? request : { ...request, tools: fitted.tools, turns };
  refuseTooMany(conversation, target);
  const { hasFreeformTools = false } = upstreamFacts[target];
  const isFreeform = (tool: Tool): tool is FreeformTool => tool.kind === "freeform" && !hasFreeformTools;
  const freeform = new Set(conversation.tools.filter(isFreeform).map((tool) => tool.name));
  const wordy = !hasFreeformTools && conversation.turns.some((turn) => turn.parts.some(isFreeformPart));
  const names = shortNames(conversation, vendorRow(target, vendor).toolNames ?? word);
  const isPlain = freeform.size === 0 && !wordy && names.size === 0 && renamed.size === 0;
  if (isPlain && conversation.turns.every(hasPlainIds)) return { conversation };

  for (const [index, tool] of conversation.tools.entries())
    if (isFreeform(tool) && grammarOf(tool)) notes.addDropped(`tools[${index}].format`);
  const nameOf = (name: string) => names.get(name) ?? name;
  const { toolChoice, allowedTools } = conversation;
  return {
    conversation: {
      ...conversation,
      tools: conversation.tools.map((tool) => {
        const plain = isFreeform(tool) ? asFunction(tool) : tool;
        return plain.kind === "foreign" ? plain : { ...plain, name: nameOf(plain.name) };
      }),
      ...(typeof toolChoice === "object" ? { toolChoice: { name: nameOf(toolChoice.name) } } : {}),
      ...(allowedTools
        ? { allowedTools: allowedTools.map((tool) => (typeof tool === "string" ? nameOf(tool) : tool)) }
        : {}),
      turns: conversation.turns.map((turn) => ({
        ...turn,
        parts: turn.parts.map((part) => adaptPart(withRenamed(part, renamed), nameOf, !hasFreeformTools)),
      })),
    },
    restore: isPlain
      ? undefined
      : joined(
          renamed.size > 0
            ? restoreMembers(new Map([...renamed].map(([name, each]) => [nameOf(name), each])))
            : undefined,
          restoreCalls(swapped(names), freeform),
        ),
  };
}

function refuseTooMany({ tools }: Conversation, target: Dialect): void {
  const limit = upstreamFacts[target].toolLimit;
  if (countTools(tools, target) <= limit) return;
  const names = namesOf(tools);
  const groups = quoted(largestGroups(names, 3));
  const sentence = words`This request has ${names.length} tools, but this model accepts at most ${limit}. Disable some of them; the largest groups are: ${groups}. With \`toolSearch\` set to \`auto\` in dragoman's config, the model searches for those that it needs.`;
  refuse("tools", sentence, "too_many_tools");
}

/** The names that upstreams refuse, with their replacements. A name gets the same replacement in every request. */
function shortNames({ tools, turns, toolChoice }: Conversation, taken: RegExp): Map<string, string> {
  const names = new Set(namesOf(tools));
  for (const turn of turns) for (const part of turn.parts) if (part.kind === "tool-call") names.add(part.name);
  if (typeof toolChoice === "object") names.add(toolChoice.name);
  const short = new Map<string, string>();
  for (const name of [...names].filter((name) => !taken.test(name))) {
    let attempt = 0;
    while (names.has(asWord(name, attempt))) attempt++;
    names.add(asWord(name, attempt));
    short.set(name, asWord(name, attempt));
  }
  return short;
}

/** An allowed name for this text, made unique by a hash. */
function asWord(text: string, attempt = 0): string {
  const hash = new Bun.CryptoHasher("sha256")
    .update(`${text}${"\0".repeat(attempt)}`)
    .digest("hex")
    .slice(0, 8);
  const begun = text.replace(/^(?=[\d-])/, "_");
  return `${begun.slice(0, 55).replaceAll(/[^a-zA-Z0-9_-]/g, "_")}_${hash}`;
}

const hasPlainIds = (turn: Turn): boolean =>
  turn.parts.every((part) => (part.kind !== "tool-call" && part.kind !== "tool-result") || word.test(part.id));

const isFreeformPart = (part: Part): boolean =>
  (part.kind === "tool-call" || part.kind === "tool-result") && !!part.freeform;

function asFunction({ name, description, extras, ...tool }: FreeformTool): FunctionTool {
  const grammar = grammarOf(tool);
  const explained = [
    description,
    "The input is one text, not JSON: give it whole, as it is, as the string `input`.",
    grammar && `The text must follow this grammar${grammar.syntax}:\n${grammar.definition}`,
  ];
  return {
    kind: "function",
    name,
    description: explained.filter((line) => line).join("\n\n"),
    schema: {
      type: "object",
      properties: { input: { type: "string", description: "The whole text." } },
      required: ["input"],
      additionalProperties: false,
    },
    ...(extras ? { extras } : {}),
  };
}

/** The grammar: flat (responses dialect) or nested one level deeper (chat dialect). */
function grammarOf({ grammar }: { grammar?: unknown }): { definition: string; syntax: string } | undefined {
  const rules = isObject(grammar) && isObject(grammar.grammar) ? grammar.grammar : grammar;
  if (!isObject(rules) || typeof rules.definition !== "string") return undefined;
  return { definition: rules.definition, syntax: typeof rules.syntax === "string" ? ` (${rules.syntax})` : "" };
}

function adaptPart(part: Part, nameOf: (name: string) => string, asFunctions: boolean): Part {
  if (part.kind !== "tool-call" && part.kind !== "tool-result") return part;
  const { freeform, ...plain } = part;
  const id = word.test(part.id) ? part.id : asWord(part.id);
  const adapted = freeform && !asFunctions ? { ...part, id } : { ...plain, id };
  if (adapted.kind === "tool-result") return adapted;
  const input = freeform && asFunctions ? JSON.stringify({ input: adapted.input }) : adapted.input;
  return { ...adapted, name: nameOf(adapted.name), input };
}

/** A call of an earlier turn under the names that its tool's properties are sent with. */
function withRenamed(part: Part, renamed: ReadonlyMap<string, RenamedProperties>): Part {
  const properties = part.kind === "tool-call" ? renamed.get(part.name) : undefined;
  return part.kind === "tool-call" && properties ? { ...part, input: renameMembers(part.input, properties) } : part;
}

const swapped = (names: RenamedProperties): Map<string, string> =>
  new Map([...names].map(([one, other]) => [other, one]));

/**
 * Restores the client's tool names. A freeform tool's input is unwrapped from its JSON when the call is complete: when
 * something follows its end that is no error. A part of that JSON is no part of the input.
 */
function restoreCalls(names: Map<string, string>, freeform: Set<string>): Stage<ReplyEvent, ReplyEvent> {
  return (next) => {
    let input: string | undefined;
    let end: ReplyEvent | undefined;
    const finish = (isWhole: boolean) => {
      const text = isWhole && input !== undefined ? unwrapped(input) : "";
      if (text !== "") next.push({ type: "block-delta", text });
      if (end) next.push(end);
      input = undefined;
      end = undefined;
    };
    return {
      push(event) {
        if (end) finish(event.type !== "error");
        if (event.type === "block-start" && event.block.kind === "tool-call") {
          const name = names.get(event.block.name) ?? event.block.name;
          if (freeform.has(name)) input = "";
          next.push({ ...event, block: { ...event.block, name, ...(freeform.has(name) ? { freeform: true } : {}) } });
        } else if (event.type === "block-delta" && input !== undefined) input += event.text;
        else if (event.type === "block-end" && input !== undefined) end = event;
        else next.push(event);
      },
      end() {
        if (end) finish(true);
        next.end();
      },
    };
  };
}

/** Restores the client's names in the input of calls. @param renamed The properties under other names, by the tool's sent name. */
const restoreMembers = (renamed: ReadonlyMap<string, RenamedProperties>): Stage<ReplyEvent, ReplyEvent> =>
  changeTexts((block) => {
    const sent = block.kind === "tool-call" ? renamed.get(block.name) : undefined;
    return sent && new MemberRenamer(swapped(sent));
  });

/** The text in `{"input": text}`, under whatever name the model used; anything else is returned as it is. */
function unwrapped(json: string): string {
  const value = parseJson(json);
  if (typeof value === "string") return value;
  if (!isObject(value)) return json;
  if (typeof value.input === "string") return value.input;
  const [only, ...others] = Object.values(value);
  return typeof only === "string" && others.length === 0 ? only : json;
}
