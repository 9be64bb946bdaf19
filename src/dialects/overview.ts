/**
 * What request headers depend on. It is read from the client's JSON field by field and never fails, so that it is also
 * known for a request that cannot be translated.
 */
import { isObject } from "../json";
import type { LongText } from "../net/json/json-skeleton";

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
  /** Its only tool is one that the provider runs, and must be called. */
  isForcedTool?: boolean;
}

/** The beginning of a prompt, by which the upstream's cache finds it. Without cache marks, which move. */
export interface PromptHead {
  tools: unknown;
  system: unknown;
  /** The first message that is not the system's. */
  first: unknown;
}

/** A message, or an item that counts as one. */
export interface OverviewMessage {
  by: "system" | "model" | "user" | "tool";
  /** A string, a part, or a list of parts. */
  content: unknown;
}

/** The part types of a dialect; unknown types count as media. */
interface PartTypes {
  text: ReadonlySet<unknown>;
  image: ReadonlySet<unknown>;
  /** Whether it is a tool's output in a user message; its `content` holds parts again. */
  isResult?(type: unknown): boolean;
}

export function overviewOf(conversation: readonly OverviewMessage[], types: PartTypes): Overview {
  const spoken = conversation.filter(({ by }) => by !== "system");
  const from = spoken.findLastIndex(({ by }) => by === "model") + 1;
  const since: Overview["since"] = { results: false, texts: [], media: false };
  for (const { by, content } of spoken.slice(from))
    if (by === "tool") since.results = true;
    else collect(content, types, since);
  const last = spoken.length === 0 ? "nobody" : from === spoken.length ? "model" : "others";
  return { last, since, image: conversation.some(({ content }) => hasImage(content, types)) };
}

function collect(content: unknown, types: PartTypes, since: Overview["since"]): void {
  for (const part of partsOf(content))
    if (typeof part === "string") since.texts.push(part);
    else if (!isObject(part)) continue;
    else if (types.isResult?.(part.type)) since.results = true;
    else if (types.text.has(part.type) && typeof part.text === "string") since.texts.push(part.text);
    else since.media = true;
}

function hasImage(content: unknown, types: PartTypes): boolean {
  if (typeof content === "string") return false;
  return partsOf(content).some(
    (part) =>
      isObject(part) &&
      (types.image.has(part.type) ||
        (types.isResult?.(part.type) === true && hasImage(part.content, types)) ||
        // A document of blocks: other dialects get the blocks.
        (isObject(part.source) && hasImage(part.source.content, types))),
  );
}

const partsOf = (content: unknown): readonly unknown[] =>
  Array.isArray(content) ? content : content == null ? [] : [content];
