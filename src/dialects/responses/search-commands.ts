/**
 * `POST /v1/alpha/search`: the commands of Codex' tool `web.run`. (codex-rs/codex-api/src/search.rs; the tool's description
 * for the model is codex-rs/ext/web-search/web_run_description.md.) Codex hands the answer's `output` to its model.
 */
import { beginningOf } from "../../lib/beginning";
import { isObject } from "../../lib/json";
import type { JsonObject } from "../hub/conversation";
import { countIn, omitUndefined, refuse, textIn } from "../hub/json";
import type { ServerToolOffer, ServerToolOutput } from "../hub/server-tools";
import { outputText } from "../hub/server-turns";
import { decodeOffer } from "./server-tools";

/** One thing to look up. */
export interface Lookup {
  /** What the answer calls it. */
  title: string;
  /** What is searched for; missing if `text` is the answer. */
  query?: string;
  /** Host names, as the command limits them. */
  domains?: string[];
  text?: string;
}

interface SearchCommands {
  lookups: Lookup[];
  offer: ServerToolOffer;
  /** Characters of the answer. */
  maxLength: number;
}

/** What was found for a lookup. */
export type LookupResult = Pick<Lookup, "title"> & { output: ServerToolOutput | string };

const maxLookups = 8;
const defaultLength = 40_000;
const charactersPerToken = 4;

const notHere = "This command is not available here. Search for it, or use what is known.";

type ReadCommand = (command: JsonObject, now: number) => Omit<Lookup, "title"> & { title?: string };

/** A page is reported on by the engine: nothing is fetched here. */
function pageLookup(command: JsonObject, what: string): Omit<Lookup, "title"> {
  const address = textIn(command.ref_id);
  const page = URL.parse(address);
  if (!page || !/^https?:$/.test(page.protocol)) return { text: "Give the page's whole address as `ref_id`." };
  return { query: `${what} the page ${address}`, domains: [page.hostname] };
}

const words = (...parts: unknown[]): string => parts.map(textIn).filter(Boolean).join(" ");

/** What each command looks up. */
const readers: Record<string, ReadCommand> = {
  search_query({ q, recency, domains }) {
    const days = countIn(recency);
    const hosts = Array.isArray(domains) ? domains.map(textIn).filter(Boolean) : [];
    const query = days === undefined ? textIn(q) : `${textIn(q)} (of the last ${days} days)`;
    return { title: textIn(q), query, ...(hosts.length > 0 && { domains: hosts }) };
  },
  open: (command) => ({ title: textIn(command.ref_id), ...pageLookup(command, "what is said on") }),
  find: (command) => ({
    title: words(command.pattern, command.ref_id),
    ...pageLookup(command, `what is said about "${textIn(command.pattern)}" on`),
  }),
  finance: ({ ticker, market, type }) => ({ query: words(ticker, market, type, "price today") }),
  weather: ({ location, start }) => ({ query: words("weather forecast", location, start) }),
  sports: ({ league, fn, team, opponent, date_from }) => ({ query: words(league, team, opponent, fn, date_from) }),
  time: ({ utc_offset }, now) => ({ title: words("time", utc_offset), text: timeAt(textIn(utc_offset), now) }),
  click: () => ({ text: notHere }),
  image_query: () => ({ text: notHere }),
  screenshot: () => ({ text: notHere }),
};

/**
 * @param now Milliseconds since 1970.
 * @throws ProxyError `invalid_request` that names the field.
 */
export function decodeSearchCommands(body: JsonObject, now: number): SearchCommands {
  const { commands, settings, max_output_tokens } = body;
  if (!isObject(commands)) refuse("commands", "`commands` must say what to look up.");
  const lookups = Object.entries(commands).flatMap(([name, list]) => {
    if (!Array.isArray(list)) return [];
    const read = Object.hasOwn(readers, name) ? readers[name]! : () => ({ text: notHere });
    return list.filter(isObject).map((command): Lookup => ({ title: name, ...omitUndefined(read(command, now)) }));
  });
  if (lookups.length > maxLookups) refuse("commands", `At most ${maxLookups} things can be looked up at once.`);
  const tokens = countIn(max_output_tokens);
  return {
    lookups,
    offer: decodeOffer("web-search", isObject(settings) ? settings : {}, "settings"),
    maxLength: tokens === undefined ? defaultLength : tokens * charactersPerToken,
  };
}

/** The answer: one text, with a section for each lookup. */
export function encodeSearchAnswer(found: LookupResult[], maxLength: number): JsonObject {
  const sections = found.map(({ title, output }) => `## ${title}\n${sentencesOf(output)}`);
  const text = sections.length === 0 ? "There was nothing to look up." : sections.join("\n\n");
  return { output: text.length > maxLength ? `${beginningOf(text, Math.max(0, maxLength - 1))}…` : text };
}

function sentencesOf(output: LookupResult["output"]): string {
  if (typeof output === "string") return output;
  if (output.kind !== "pages" || output.pages.length === 0) return outputText(output);
  return output.pages
    .map(({ title, url, age, text }) =>
      [`[${title}](${url})${age ? ` (${age})` : ""}`, text].filter(Boolean).join("\n"),
    )
    .join("\n\n");
}

/** @param offset `+03:00` */
function timeAt(offset: string, now: number): string {
  const [, sign, hours = "", minutes = "0"] = /^([+-])(\d{1,2})(?::?(\d{2}))?$/.exec(offset) ?? [];
  if (sign === undefined) return "Give the offset as `+03:00`.";
  const shift = (Number(hours) * 60 + Number(minutes)) * 60_000;
  return new Date(now + (sign === "-" ? -shift : shift)).toISOString().slice(0, 19).replace("T", " ");
}
