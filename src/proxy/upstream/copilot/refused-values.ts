/** What a 400 says of a value that the model does not take, where another value does: its words, as upstreams write them. */
import type { UpstreamError } from "../upstream-error";

export interface RefusedValues {
  /** The efforts that the model takes instead of the refused one. */
  efforts?: string[];
  /** The tools, by type or name, without which the request is taken. */
  tools?: string[];
}

/**
 * Copilot on /v1/messages, recorded in 2026-07 with the code `invalid_reasoning_effort`:
 * `output_config.effort "xhigh" is not supported by model …; supported values: [low medium high max]`.
 * OpenAI's models, 2026-09, with the field in `param`: `Unsupported value: 'none' … Supported values are: 'low' and 'high'.`
 * Anthropic's API: `output_config.effort: Input should be 'low', 'medium' or 'high'`.
 */
const supportedValues =
  /\b(?:supported values(?: are)?|input should be):?\s*(?:\[([^\]]{1,400})\]|((?:(?:and |or )?['"`][\w-]{1,40}['"`],? ?){1,20}))/i;

/** Copilot on /v1/messages, recorded in 2026-07: `rejected tool(s): web_fetch`. */
const rejectedTools = /\brejected tool\(s\): ([\w.:, -]{1,2000})/i;

/** The values that an error of status 400 names; empty if it names none. */
export function refusedValues({ code, message, param = "" }: UpstreamError): RefusedValues {
  const start = message.slice(0, 4000);
  const [, tools] = rejectedTools.exec(start) ?? [];
  if (tools !== undefined) return { tools: tools.split(/[,\s]+/).filter((name) => name !== "") };
  if (!/effort/i.test(`${code} ${param} ${start}`)) return {};
  const [, listed, quoted] = supportedValues.exec(start) ?? [];
  const efforts = (listed ?? quoted)?.match(/\w+/g)?.filter((word) => word !== "and" && word !== "or");
  return efforts ? { efforts } : {};
}
