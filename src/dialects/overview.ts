/**
 * What the headers must know of a request. It is read from the client's JSON member by member, never refused: a request
 * that cannot be translated has it too.
 */
import { isObject } from "../json";

export interface Overview {
  /** Who spoke last; the system does not count: some clients end with its words. */
  last: "nobody" | "model" | "others";
  /** What was said since the model spoke last. */
  since: {
    /** The output of a tool, of whatever kind. */
    results: boolean;
    /** What stands in the user's messages, as text. */
    texts: string[];
    /** In the user's messages stands something else: an image, a file. */
    media: boolean;
  };
  /** An image is anywhere in it, also in a tool's output. */
  image: boolean;
}

/** A message, or an item in the place of one. */
export interface Said {
  by: "system" | "model" | "user" | "tool";
  /** A text, a part, or a list of parts. */
  content: unknown;
}

/** What the types of a dialect's parts mean; the types of the others are read as media. */
export interface PartTypes {
  text: ReadonlySet<unknown>;
  image: ReadonlySet<unknown>;
  /** A tool's output within a user's message; its `content` holds parts again. */
  isResult?(type: unknown): boolean;
}

export function overviewOf(conversation: readonly Said[], types: PartTypes): Overview {
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
        // A document of blocks, which are shown to models that know no such document.
        (isObject(part.source) && hasImage(part.source.content, types))),
  );
}

const partsOf = (content: unknown): readonly unknown[] =>
  Array.isArray(content) ? content : content == null ? [] : [content];
