/** The client that a word of the command line means. */
import { type ClientId, clientIds, isClientId } from "../clients/index";
import { didYouMean } from "./did-you-mean";
import { UsageError } from "./usage-error";

/** The programs of these clients have other names than the clients. */
const programs: Record<string, ClientId> = {
  claude: "claude-code",
  gemini: "gemini-cli",
  copilot: "copilot-cli",
  qwen: "qwen-code",
};

/** The client of this id or program; undefined if there is none. @param text In any case. */
export function clientIn(text: string): ClientId | undefined {
  const name = text.toLowerCase();
  if (isClientId(name)) return name;
  return Object.hasOwn(programs, name) ? programs[name] : undefined;
}

/** @param text An id, or the name of a client's program. @throws UsageError with the nearest id and all of them */
export function clientNamed(text: string): ClientId {
  const found = clientIn(text);
  if (found) return found;
  const known = `Known clients: ${clientIds.join(", ")}.`;
  throw new UsageError(`There is no client \`${text}\`.${didYouMean(text.toLowerCase(), clientIds)} ${known}`);
}
