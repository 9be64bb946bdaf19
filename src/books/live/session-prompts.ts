/**
 * Which prompt runs in a client's session. Some requests of a client name no prompt, though one caused them: a check before a
 * tool runs, a title, a summary of the conversation. They belong to the prompt that runs in their session.
 */
import { BoundedMap } from "../../lib/bounded-map";
import { hourMs } from "../../lib/format";

/** Whose session it is. Equal ids of two people, or of two keys, are two sessions. */
interface ClientSession {
  /** Null for the owner's. */
  member: string | null;
  keyName: string | null;
  /** Undefined if the client names none. */
  session?: string | undefined;
}

/** Of more sessions, those that were used last are known. */
const maxSessions = 5_000;
/** After so long without a request that names it, a prompt no longer runs. */
const lifetimeMs = hourMs;

export class SessionPrompts {
  readonly #running = new BoundedMap<string, { prompt: string; at: number }>(maxSessions);

  /** @param now Wall clock, ms. */
  constructor(private readonly now: () => number) {}

  /** A request begins that names this prompt: it runs in the session from now on. */
  begin(of: ClientSession, prompt: string): void {
    if (of.session !== undefined) this.#running.set(keyOf(of), { prompt, at: this.now() });
  }

  /** A request ends that named this prompt. Another one may run by now. */
  end(of: ClientSession, prompt: string): void {
    if (of.session === undefined) return;
    const running = this.#running.get(keyOf(of));
    if (running?.prompt === prompt) running.at = this.now();
  }

  /** The prompt that runs in the session; undefined if none is known. */
  runningIn(of: ClientSession): string | undefined {
    if (of.session === undefined) return undefined;
    const running = this.#running.get(keyOf(of));
    return running && this.now() - running.at < lifetimeMs ? running.prompt : undefined;
  }
}

const keyOf = ({ member, keyName, session }: ClientSession): string => JSON.stringify([member, keyName, session]);
