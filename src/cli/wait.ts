/** `dragoman wait`: ends when a model can be served again, so that a script can go on. */
import { z } from "zod";
import type { Environment } from "../config/environment";
import { zonedTime } from "../format";
import { ask, readAs, requireServer } from "./running-server";
import { interrupted, say } from "./terminal";

interface WaitOptions {
  environment: Environment;
  model?: string;
  /** Minutes; for as long as it takes by default. */
  longest?: number;
}

const answerSchema = z.object({ ready: z.boolean(), ready_at: z.iso.datetime().nullable() });
/** Seconds of one question. */
const pollSeconds = 25;

/** @returns 0 when it can be served, 1 when it could not within the time. @throws ProxyError if waiting does not help. */
export async function waitFor({ environment, model, longest }: WaitOptions): Promise<number> {
  const server = requireServer(environment);
  const deadline = longest === undefined ? Number.POSITIVE_INFINITY : Date.now() + longest * 60_000;
  const signal = interrupted();
  let told: string | null = null;
  // The first question is answered at once, so that the person knows how long it takes.
  for (let most = 0; ; most = pollSeconds) {
    const left = Math.max(0, (deadline - Date.now()) / 1_000);
    const query = new URLSearchParams({
      seconds: String(Math.ceil(Math.min(left, most))),
      ...(model !== undefined && { model }),
    });
    const path = `/wait?${query}`;
    const { ready, ready_at } = readAs(answerSchema, await ask(server, { path, timeoutMs: 60_000 }), server);
    signal.throwIfAborted();
    if (ready) {
      say("Ready.");
      return 0;
    }
    const until = ready_at === null ? null : zonedTime(Date.parse(ready_at), Date.now());
    if (Date.now() >= deadline) {
      say(`Not ready${until === null ? "" : ` before ${until}`}.`);
      return 1;
    }
    if (until !== null && until !== told) say(`Ready at ${until}, if nothing changes.`);
    told = until;
  }
}
