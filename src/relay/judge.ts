/** Judges the tool uses of a reply with a model of the owner's choice, where Claude Code's auto mode asks for that. */
import type { Scope } from "../app";
import type { JsonObject } from "../dialects/hub/conversation";
import {
  checkIn,
  type Judge,
  judgeRequest,
  streamVerdicts,
  type ToolUse,
  type Verdict,
  verdictsIn,
  withVerdicts,
} from "../dialects/messages/safeguards";
import { ProxyError } from "../errors";
import type { Exchange } from "./exchange";
import { fullBody } from "./incoming";
import type { RunningRequest } from "./running-request";

/** Serves a request of the judge's in the messages dialect, with a row of its own. */
type Ask = (request: Request, running: RunningRequest) => Promise<Response>;

/** The answer with a verdict for each of its tool uses, if the client asked for them and the owner lets a model give them. */
export async function judged(
  { config, limits }: Scope,
  exchange: Exchange,
  ask: Ask,
  answer: Response,
): Promise<Response> {
  const { autoModeModel } = config.current;
  if (autoModeModel === "off" || !checkIn(exchange.incoming.body) || !answer.ok || !answer.body) return answer;
  const body = fullBody(exchange.incoming);
  const context = checkIn(body)?.context;
  const judge: Judge = (uses) =>
    verdictsOf(exchange, ask, judgeRequest(body, context, uses, autoModeModel), uses, limits.verdict);
  const { status, headers } = answer;
  const isStream = /event-stream/.test(headers.get("content-type") ?? "");
  const told = isStream
    ? streamVerdicts(answer.body, judge, limits.keepAlive)
    : await withVerdicts(await answer.text(), judge);
  return new Response(told, { status, headers });
}

const tooSlow = (timeoutMs: number) =>
  new ProxyError("timeout", `The model of \`autoModeModel\` gave no verdict within ${timeoutMs / 1000} seconds.`);

/** A judge that fails, is slow or says nothing clear permits nothing. */
async function verdictsOf(
  { request, running }: Exchange,
  ask: Ask,
  question: JsonObject,
  uses: readonly ToolUse[],
  timeoutMs: number,
): Promise<Verdict[]> {
  const own = running.openChild("auto_mode", "judge");
  const timeout = AbortSignal.timeout(timeoutMs);
  try {
    const headers = new Headers(request.headers);
    for (const name of ["content-length", "content-encoding"]) headers.delete(name);
    headers.set("x-claude-code-request-class", "auxiliary");
    const body = JSON.stringify(question);
    timeout.addEventListener("abort", () => own.stop(tooSlow(timeoutMs)), { once: true });
    const answer = await ask(new Request(request.url, { method: "POST", headers, body, signal: request.signal }), own);
    return verdictsIn(await answer.json(), uses);
  } catch {
    // Its row says why.
    const reason = timeout.aborted ? "timeout" : "error";
    return uses.map(() => ({ is: "unknown", reason }));
  }
}
