/** Between a dialect and the demo's model: a request becomes a `ModelRequest`, and each dialect writes the `ModelReply` as its answer. */
import { type Json, list, record, records, string, textOf, textsOf, weigh } from "./wire";

export interface Tool {
  name: string;
  namespace?: string;
  /** `custom` tools take text instead of JSON. */
  kind: "function" | "custom";
  description: string;
  schema: unknown;
  /** The model is to search for it first. */
  isDeferred?: boolean;
}

/** A model that searches for its tools does not have these at first. */
export const presentTools = (tools: readonly Tool[]) => tools.filter(({ isDeferred }) => !isDeferred);

/** A request as the demo's model sees it. */
export interface ModelRequest {
  model: string;
  stream: boolean;
  /** The newest text of a person, without reminders. */
  prompt: string;
  /** The tool results at the end of the conversation, in order; empty if it ends with a person's turn. */
  results: string[];
  /** Texts of system and user turns, which name the working folder. */
  background: string[];
  tools: Tool[];
  /** A tool that must be called; `any`: one of the tools; `none`: no tool. */
  choice: "auto" | "any" | "none" | { name: string };
  /** Reasoning was requested or forbidden; undefined leaves it to the model. */
  thinks: boolean | undefined;
  /** The requested effort, unchanged. */
  effort: string | undefined;
  /** Several calls at once are allowed. */
  parallel: boolean;
  /** The JSON schema that the answer must satisfy. */
  schema: unknown;
  maxTokens: number | undefined;
  stops: string[];
  images: number;
  /** Everything the model reads, in the order in which it is cached. */
  blocks: PromptBlock[];
  /** `prompt_cache_key`. */
  cacheKey: string | undefined;
  /** Size of the texts that the model reads, in units of which four are a token of the plain tokenizer. */
  weight: number;
  /** The same of the definitions of tools. */
  toolWeight: number;
}

/** One message of a conversation. */
export interface Turn {
  role: unknown;
  /** A text or a list of parts. */
  content: unknown;
  /** The contents of the tool results that it brings. */
  results: unknown[];
}

/** What a dialect alone can read of its request. */
export type Reading = Pick<
  ModelRequest,
  "tools" | "choice" | "thinks" | "effort" | "parallel" | "schema" | "maxTokens" | "stops" | "blocks"
> & { turns: Turn[] };

export function readRequest(body: Json, { turns, ...reading }: Reading): ModelRequest {
  const talk = turns.filter(({ role }) => role !== "system");
  const results = talk
    .slice(talk.findLastIndex((turn) => turn.results.length === 0) + 1)
    .flatMap((turn) => turn.results.map(textOf));
  // A message with only a client's reminder since the model's last one must trigger no calls again.
  const asking = results.length > 0 ? turns : turns.slice(turns.findLastIndex(({ role }) => role === "assistant") + 1);
  return {
    ...reading,
    model: string(body.model),
    stream: body.stream === true,
    prompt:
      asking
        .filter(({ role }) => role === "user")
        .map(newestWords)
        .findLast(Boolean) ?? "",
    results,
    background: turns
      .filter(({ role }) => role !== "assistant" && role !== "tool")
      .map(({ content }) => textOf(content)),
    images: turns.reduce((sum, { content }) => sum + imagesIn(content), 0),
    cacheKey: string(body.prompt_cache_key) || undefined,
    weight: weigh([body.system, body.instructions, body.messages, body.input]),
    // What waits to be searched for is no part of the prompt.
    toolWeight: weigh(list(body.tools).filter((tool) => record(tool).defer_loading !== true)),
  };
}

/** The last text that has a person's own words: clients put their context into earlier ones. */
const newestWords = ({ content }: Turn): string => textsOf(content).map(ownWords).findLast(Boolean) ?? "";

/** The person's own words, without the text in tags that clients add: it must not trigger tool calls. */
export function ownWords(text: string): string {
  const tags = /<(system-reminder|environment_context|user_instructions|mode_notice|session_context)>/g;
  const unclosed = new Set<string>();
  let kept = "";
  let from = 0;
  for (let tag = tags.exec(text); tag; tag = tags.exec(text)) {
    const closing = `</${tag[1]}>`;
    // Each missing end is searched for once only: a text of opening tags alone would take minutes.
    const end = unclosed.has(closing) ? -1 : text.indexOf(closing, tags.lastIndex);
    if (end === -1) {
      unclosed.add(closing);
      continue;
    }
    kept += text.slice(from, tag.index);
    from = tags.lastIndex = end + closing.length;
  }
  // This tag encloses the person's own words, so only the tag is removed.
  return (kept + text.slice(from)).replace(/<\/?user_input(?: mode="\w+")?>/g, "").trim();
}

const imageTypes = new Set<unknown>(["image", "image_url", "input_image"]);

/** Images, including those in tool results. */
const imagesIn = (content: unknown): number =>
  records(content).reduce((sum, part) => sum + (imageTypes.has(part.type) ? 1 : imagesIn(part.content)), 0);

export interface PromptBlock {
  /** Its JSON, without a cache mark. */
  text: string;
  /** It has a cache mark: the prompt up to its end is to be cached. */
  marked: boolean;
}

export interface Call {
  tool: Tool;
  /** An object; a string for a custom tool. */
  input: unknown;
}

export interface ModelReply {
  /** The pieces for streaming; together they are the full text. */
  thinking: string[];
  /** The model thought, but the text may not be shown. */
  redacted: boolean;
  text: string[];
  calls: Call[];
  finish: "stop" | "tool" | "length" | "refusal" | "stop-sequence";
  stopSequence?: string;
  /** A web search that the model made before its answer. */
  search?: string;
  usage: Usage;
}

/** In tokens. `input` includes the cached parts; `output` includes `reasoning`. */
export interface Usage {
  input: number;
  cacheRead: number;
  cacheWrite: number;
  output: number;
  reasoning: number;
}
