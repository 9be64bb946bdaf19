/** Ids of the responses dialect. */
import { randomId } from "../hub/ids";

export const ownId = (prefix: string): string => `${prefix}_${randomId()}`;

/** Whether dragoman, or a server like it, has made the id: OpenAI's are longer, and GitHub Copilot's have no prefix. */
export const isOwnId = (id: unknown): boolean =>
  typeof id === "string" && /^(?:resp|msg|rs|fc|ctc|ws|tsc|tso|cmp)_[0-9a-f]{32}$/.test(id);
