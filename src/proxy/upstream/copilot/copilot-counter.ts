/**
 * GitHub Copilot's count of a messages request: exact, and free. Clients of Copilot ask for it (seen 2026-09), and in the
 * spring of 2026 the endpoint did not exist: where it is missing, the account's host is not asked again for a day.
 */

import type { JsonObject } from "../../../dialects/hub/conversation";
import { countIn } from "../../../dialects/hub/json";
import { BoundedMap } from "../../../lib/bounded-map";
import { dayMs } from "../../../lib/format";
import { isObject, parseJson } from "../../../lib/json";
import type { Logger } from "../../../lib/logger";
import { asSent, withTexts } from "../../../lib/net/in/request-body";
import type { Skeleton } from "../../../lib/net/json/json-skeleton";
import { readStart, readText } from "../../../lib/net/out/body";
import { singleLimit } from "../../../lib/net/out/clock";
import type { Account } from "../../../people/accounts/account";
import { isSuspended } from "../../../people/accounts/account-state";
import type { CopilotToken } from "../../../people/accounts/copilot-token";
import type { Copilot } from "./copilot";
import { readFailure } from "./failure";

export interface CountedRequest {
  body: JsonObject;
  /** Missing where `body` has no marks. */
  skeleton?: Skeleton;
  headers: Record<string, string>;
  vision: boolean;
}

const path = "/v1/messages/count_tokens";

/** Milliseconds for the whole call: a client waits for it before it gets the estimate. */
const timeoutMs = 500;

/** How long a host is not asked after this answer, ms; missing where the request itself was at fault. */
const pauses = new Map([
  [403, dayMs],
  [404, dayMs],
  [405, dayMs],
  [400, 0],
  [413, 0],
]);
/** After any other answer, and after none in time. */
const otherPause = 600_000;

/** The members that are counted; the endpoint refuses others (`max_tokens`, `stream`). */
const counted = ["model", "messages", "system", "tools", "tool_choice", "thinking"];

export class CopilotCounter {
  /** Until when the host of an account is not asked, by the monotonic clock. */
  readonly #pausedUntil = new BoundedMap<string, number>(1000);

  constructor(
    private readonly copilot: Copilot,
    private readonly logger: Pick<Logger, "debug">,
    private readonly monotonic: () => number,
  ) {}

  /**
   * @param accounts Those that may count, in order; the first one that is signed in and not known to fail is asked.
   * @param request The messages request as it would be sent, with the headers of its dialect; `vision` if it has images.
   * @returns Undefined if no account counts it; the caller then has an estimate.
   */
  async count(accounts: readonly Account[], request: CountedRequest, requestId: string): Promise<number | undefined> {
    for (const account of accounts) {
      // A token that has to be fetched first would take longer than the estimate.
      const token = account.presentCopilotToken();
      if (!token) continue;
      const key = `${account.key} ${token.baseUrl}`;
      if ((this.#pausedUntil.get(key) ?? Number.NEGATIVE_INFINITY) > this.monotonic()) continue;
      const pause = (ms: number) => void this.#pausedUntil.set(key, this.monotonic() + ms);
      try {
        return await this.#countBy(account, token, request, requestId, pause);
      } catch (thrown) {
        pause(otherPause);
        this.logger.debug("Tokens are estimated: GitHub Copilot did not count them.", thrown);
        return undefined;
      }
    }
    return undefined;
  }

  async #countBy(
    account: Account,
    token: CopilotToken,
    { body, skeleton, headers, vision }: CountedRequest,
    requestId: string,
    pause: (ms: number) => void,
  ): Promise<number | undefined> {
    const members = Object.fromEntries(counted.filter((name) => name in body).map((name) => [name, body[name]]));
    const response = await this.copilot.call(token, {
      path,
      body: asSent(withTexts(JSON.stringify(members), skeleton)),
      requestId,
      intent: "conversation-agent",
      initiator: "agent",
      vision,
      headers,
      limits: singleLimit(timeoutMs),
    });
    const { status, ok } = response;
    if (ok) {
      const answer = parseJson(await readText(response, 1024 * 1024));
      const tokens = isObject(answer) ? countIn(answer.input_tokens) : undefined;
      if (tokens === undefined) pause(otherPause);
      return tokens;
    }
    pause(pauses.get(status) ?? otherPause);
    const { account: state } = readFailure(status, response.headers, await readStart(response, 64 * 1024), Date.now());
    if (state && isSuspended(state)) account.setState(state);
    return undefined;
  }
}
