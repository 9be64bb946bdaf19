/**
 * What request headers depend on. A dialect reads only the outline of the client's JSON, which never fails and costs little: a
 * request that is passed on is not decoded, and one that cannot be decoded has an outline.
 */
import { isObject } from "../lib/json";
import type { LongText } from "../lib/net/json/json-skeleton";
import type { JsonObject } from "./hub/conversation";
import type { ModelFacts } from "./hub/model";

/** What a request says, as far as that can be told without decoding it; also of a request that cannot be decoded. */
export interface Outline {
  tools: unknown;
  /** Instructions that stand beside the messages. */
  system?(): unknown;
  messages: readonly OutlineMessage[];
  /** Its only tool is one that the provider runs, and must be called. */
  isForcedTool?: boolean;
  /** The client's key for the prompt cache or its session id; not validated. */
  session?: unknown;
  /** The client's id for what a person asked, which all requests for it share; not validated. */
  promptId?: unknown;
  /** What a request beside the conversation is for, where its form tells it. */
  auxiliaryKind?(): "check" | "title" | undefined;
  /** What the request names by its id in place of sending it, other than reasoning. */
  references?(): ItemReference[];
  /** Nothing is to be generated. */
  isWarmUp?: boolean;
  /** The most tokens that the request wants in its reply. */
  maxTokens?: number;
  /** Whether the request wants of this model what dragoman can do in the upstream's place: to run a tool, to search tools. */
  offersServerTools?(model: ModelFacts): boolean;
  /** Whether the history has calls of such tools, which the upstream would refuse. */
  hasServerCalls?(): boolean;
  /** Whether it has results of such tools that only dragoman can read. */
  hasOwnResults?(): boolean;
}

export interface ItemReference {
  id: string;
  /** Its place in the request. */
  param: string;
}

/** A message, or an item that counts as one. */
export interface OutlineMessage {
  by: Speaker;
  /** A string, a part, or a list of parts. */
  content: unknown;
  /** As the client wrote it; missing where that is a text alone. */
  item?: JsonObject;
}

type Speaker = "system" | "model" | "user" | "tool";

/** `function` is the former name of `tool`; both are in the OpenAI SDK's ChatCompletionMessageParam. */
const speakers = new Map<unknown, Speaker>([
  ["system", "system"],
  ["developer", "system"],
  ["assistant", "model"],
  ["model", "model"],
  ["tool", "tool"],
  ["function", "tool"],
]);

/** Who has the role; a role that is not known is the user's. */
export const speakerOf = (role: unknown): Speaker => speakers.get(role) ?? "user";

export interface Overview {
  /** Who spoke last; system messages do not count, because some clients append them. */
  last: "nobody" | "model" | "others";
  /** The content since the model spoke last. */
  since: {
    /** There is a tool's output, of any kind. */
    results: boolean;
    /** The texts of the user's messages. */
    texts: LongText[];
    /** The user's messages contain something else: an image, a file. */
    media: boolean;
  };
  /** The request contains an image, possibly in a tool's output. */
  image: boolean;
  isForcedTool?: boolean;
}

export function overviewOf({ messages, isForcedTool }: Outline): Overview {
  const from = messages.findLastIndex(isModels) + 1;
  const since: Overview["since"] = { results: false, texts: [], media: false };
  let last: Overview["last"] = from === 0 ? "nobody" : "model";
  for (let at = from; at < messages.length; at++) {
    const { by, content } = messages[at]!;
    if (by === "system") continue;
    last = "others";
    if (by === "tool") since.results = true;
    else collect(content, since);
  }
  return { last, since, image: messages.some(showsImage), isForcedTool };
}

const isModels = ({ by }: OutlineMessage): boolean => by === "model";
const showsImage = ({ content }: OutlineMessage): boolean => hasImage(content);

/** The types of parts, in all dialects; unknown ones count as media. */
const textTypes: ReadonlySet<unknown> = new Set(["text", "input_text", "output_text"]);
const imageTypes: ReadonlySet<unknown> = new Set(["image", "image_url", "input_image", "computer_screenshot"]);

/** A tool's output in a user message, whose `content` holds parts again: also those of typed tools (`mcp_tool_result`). */
const isResult = (type: unknown): boolean => typeof type === "string" && /(?:^|_)tool_result$/.test(type);

function collect(content: unknown, since: Overview["since"]): void {
  if (typeof content === "string") return void since.texts.push(content);
  for (const part of partsOf(content))
    if (typeof part === "string") since.texts.push(part);
    else if (!isObject(part)) continue;
    else if (isResult(part.type)) since.results = true;
    else if (textTypes.has(part.type) && typeof part.text === "string") since.texts.push(part.text);
    else since.media = true;
}

function hasImage(content: unknown): boolean {
  if (typeof content === "string") return false;
  return partsOf(content).some(
    (part) =>
      isObject(part) &&
      (imageTypes.has(part.type) ||
        (isResult(part.type) && hasImage(part.content)) ||
        // A document of blocks: other dialects get the blocks.
        (isObject(part.source) && hasImage(part.source.content))),
  );
}

/** A content as a list: it may be one text, one part, or nothing. */
export const partsOf = (content: unknown): readonly unknown[] =>
  Array.isArray(content) ? content : content == null ? [] : [content];
