/** Calls of the looks: what an answer looked like, whatever its status. */

import { upstreamPaths } from "../../lib/api-paths";
import { isObject, parseJson } from "../../lib/json";
import { plainName } from "../../lib/json-shape";
import { readText } from "../../lib/net/out/body";
import { singleLimit } from "../../lib/net/out/clock";
import type { Account } from "../../people/accounts/account";
import type { Copilot, CopilotCall } from "../../proxy/upstream/copilot/copilot";

/** What an answer looked like. */
export interface Seen {
  /** Null if there was none. */
  status: number | null;
  code: string | null;
  json: unknown;
  text: string;
  headers: Headers;
}

/** `GET` without a body. Never throws. */
export type Ask = (
  path: string,
  body?: Record<string, unknown>,
  more?: { headers?: Record<string, string> },
) => Promise<Seen>;

/** Never throws. @param record Called with each answer. */
export const askerOf =
  (copilot: Copilot, account: Account, record: (seen: Seen) => void): Ask =>
  async (path, body, { headers } = {}) => {
    let seen: Seen = { status: null, code: null, json: undefined, text: "", headers: new Headers() };
    try {
      const call: CopilotCall = {
        path,
        requestId: crypto.randomUUID(),
        intent: body ? "conversation-agent" : "model-access",
        limits: singleLimit(60_000),
        ...(body && { body: JSON.stringify(body), initiator: "user" as const }),
        headers: { ...(path.startsWith(upstreamPaths.messages) && { "anthropic-version": "2023-06-01" }), ...headers },
      };
      const response = await copilot.call(await account.copilotToken(), call);
      const text = await readText(response, 32 * 1024 * 1024);
      const json = parseJson(text);
      const code = response.ok ? null : answeredCode(json);
      seen = { status: response.status, code, json, text, headers: response.headers };
    } catch {
      // No answer: its status is null in the report.
    }
    record(seen);
    return seen;
  };

function answeredCode(json: unknown): string | null {
  const error = isObject(json) && isObject(json.error) ? json.error : json;
  const code = isObject(error) ? (error.code ?? error.type ?? error.error) : undefined;
  return typeof code === "string" ? plainName(code) : null;
}
