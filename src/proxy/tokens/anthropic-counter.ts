/** Anthropic's own token counter: exact for Claude models, free, and limited in calls per minute. */

import type { JsonObject } from "../../dialects/hub/conversation";
import { countIn } from "../../dialects/hub/json";
import { ProxyError } from "../../lib/errors";
import { isObject, parseJson } from "../../lib/json";
import type { Logger } from "../../lib/logger";
import { asSent, withTexts } from "../../lib/net/in/request-body";
import type { Skeleton } from "../../lib/net/json/json-skeleton";
import { readText } from "../../lib/net/out/body";
import { singleLimit } from "../../lib/net/out/clock";
import { callOut } from "../../lib/net/out/fetch";

/** Milliseconds. If it fails, the client still waits for the estimate. */
const timeoutMs = 900;

/** The members that the counter accepts; it refuses a request with others (`max_tokens`, `stream`). */
const counted = ["messages", "system", "tools", "tool_choice", "thinking"];

export class AnthropicCounter {
  /** @param key Read for each count: the config may change. */
  constructor(
    private readonly url: string,
    private readonly key: () => string | undefined,
    private readonly logger: Pick<Logger, "debug">,
  ) {}

  /**
   * The input tokens of a messages request; undefined without a key, or when the service fails or times out: the client then gets
   * an estimate.
   * @param model Copilot's id; the counter needs dashes instead of dots. @param skeleton Of a body with marks.
   */
  async count(model: string, body: JsonObject, skeleton: Skeleton | undefined): Promise<number | undefined> {
    const key = this.key();
    if (!key || !/^claude/i.test(model)) return undefined;
    const members = Object.fromEntries(counted.filter((name) => name in body).map((name) => [name, body[name]]));
    const sent = asSent(withTexts(JSON.stringify({ model: model.replaceAll(".", "-"), ...members }), skeleton));
    try {
      return await this.#ask(key, sent);
    } catch (thrown) {
      this.logger.debug("Tokens are estimated: Anthropic's token counter failed.", thrown);
      return undefined;
    }
  }

  /** @throws ProxyError on any failure. */
  async #ask(key: string, body: ReturnType<typeof asSent>): Promise<number> {
    const response = await callOut(`${this.url}/v1/messages/count_tokens`, {
      method: "POST",
      headers: { "content-type": "application/json", "x-api-key": key, "anthropic-version": "2023-06-01" },
      body,
      limits: singleLimit(timeoutMs),
      who: "Anthropic's token counter",
    });
    const text = await readText(response, 1024 * 1024);
    if (!response.ok)
      throw new ProxyError("upstream", `Anthropic's token counter answered with status ${response.status}.`);
    const answer = parseJson(text);
    const tokens = isObject(answer) ? countIn(answer.input_tokens) : undefined;
    if (tokens === undefined) throw new ProxyError("upstream", "Anthropic's token counter answered without a number.");
    return tokens;
  }
}
