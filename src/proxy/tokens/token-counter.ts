/** Anthropic's own token counter: exact for Claude models, free, and limited in calls per minute. */

import type { JsonObject } from "../../dialects/hub/conversation";
import { countIn } from "../../dialects/hub/json";
import { ProxyError } from "../../lib/errors";
import { isObject, parseJson } from "../../lib/json";
import { asSent, withTexts } from "../../lib/net/in/request-body";
import type { Skeleton } from "../../lib/net/json/json-skeleton";
import { readText } from "../../lib/net/out/body";
import { singleLimit } from "../../lib/net/out/clock";
import { callOut } from "../../lib/net/out/fetch";

/** Milliseconds. If it fails, the client still waits for the estimate. */
const timeoutMs = 900;

/** The members that the counter accepts; it refuses a request with others (`max_tokens`, `stream`). */
const counted = ["messages", "system", "tools", "tool_choice", "thinking"];

/**
 * The input tokens of a messages request.
 * @param model Copilot's id; the counter needs dashes instead of dots. @param skeleton Of a body with marks.
 * @throws ProxyError on any failure; the caller then uses an estimate.
 */
export async function countExactly(
  url: string,
  key: string,
  model: string,
  body: JsonObject,
  skeleton: Skeleton | undefined,
): Promise<number> {
  const members = Object.fromEntries(counted.filter((name) => name in body).map((name) => [name, body[name]]));
  const response = await callOut(`${url}/v1/messages/count_tokens`, {
    method: "POST",
    headers: { "content-type": "application/json", "x-api-key": key, "anthropic-version": "2023-06-01" },
    body: asSent(withTexts(JSON.stringify({ model: model.replaceAll(".", "-"), ...members }), skeleton)),
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
