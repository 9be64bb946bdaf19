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

/** @param text An id, or the name of a client's program. @throws UsageError with the nearest id and all of them */
export function clientNamed(text: string): ClientId {
  const name = text.toLowerCase();
  if (isClientId(name)) return name;
  if (Object.hasOwn(programs, name)) return programs[name]!;
  const known = `Known clients: ${clientIds.join(", ")}.`;
  throw new UsageError(`There is no client \`${text}\`.${didYouMean(name, clientIds)} ${known}`);
}
