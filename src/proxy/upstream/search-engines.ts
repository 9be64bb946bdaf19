/** Search engines of others. Each gives pages for a query; the key and the address come from the config. */

import type { Config } from "../../config/schema";
import { hostOfLimit, type ServerToolOffer, type WebPage } from "../../dialects/hub/server-tools";
import { beginningOf } from "../../lib/beginning";
import { ProxyError } from "../../lib/errors";
import { isObject, notJson, parseJson } from "../../lib/json";
import { readStart, readText } from "../../lib/net/out/body";
import { singleLimit } from "../../lib/net/out/clock";
import { callOut } from "../../lib/net/out/fetch";

export interface SearchEngine {
  name: string;
  /** Whether the query, with the limits that are sent in it, is short enough for the engine. */
  takes(query: string, offer: ServerToolOffer): boolean;
  /**
   * @param controller Ends the search; a limit of the call aborts it too.
   * @param answered Gets the status of each answer.
   * @throws ProxyError `rate_limit`, `upstream`, `timeout`
   */
  search(
    query: string,
    offer: ServerToolOffer,
    controller: AbortController,
    answered: (status: number) => void,
  ): Promise<WebPage[]>;
}

/** Milliseconds that a search may take. */
const timeoutMs = 20_000;
const maxAnswerBytes = 4 * 1024 * 1024;
const pagesWanted = 8;
/** Characters of what is known of a page: all of it is paid for as a part of the prompt. */
const [longestText, longestTitle, longestAge, longestUrl] = [2000, 300, 60, 2000];

interface LongestQuery {
  characters: number;
  words?: number;
}

/** Its reference of the parameter `q`, 2026-11. Operators are a part of it. */
const braveLongest: LongestQuery = { characters: 400, words: 50 };

interface EngineForm {
  /** For sentences. */
  title: string;
  /** Where it is if the config names no address. */
  url?: string;
  /** What it accepts as a query. */
  longest?: LongestQuery;
  /** `path` follows the address. */
  request(
    query: string,
    offer: ServerToolOffer,
    key: string,
  ): { path: string; headers: Record<string, string>; body?: object };
  /** The list of results in its answer. */
  results(answer: Record<string, unknown>): unknown;
  /** The names of a result's fields. */
  fields: { text: string; age: string };
}

const noHeaders: Record<string, string> = {};

type EngineName = Exclude<Config["webSearchEngine"]["name"], "model">;

const forms: Record<EngineName, EngineForm> = {
  brave: {
    title: "Brave Search",
    url: "https://api.search.brave.com",
    longest: braveLongest,
    request: (query, offer, key) => ({
      path: `/res/v1/web/search?${new URLSearchParams({
        q: withSites(query, offer, braveLongest),
        count: String(pagesWanted),
        text_decorations: "false",
        ...countryOf(offer),
      })}`,
      headers: { "x-subscription-token": key },
    }),
    results: ({ web }) => (isObject(web) ? web.results : undefined),
    fields: { text: "description", age: "age" },
  },
  tavily: {
    title: "Tavily",
    url: "https://api.tavily.com",
    longest: { characters: 400 }, // “Max query length is 400 characters”, its error of 2025-09 and 2026-03
    request: (query, { allowedDomains, blockedDomains }, key) => ({
      path: "/search",
      headers: { authorization: `Bearer ${key}` },
      body: {
        query,
        max_results: pagesWanted,
        include_domains: [...new Set((allowedDomains ?? []).map(hostOfLimit))],
        // Of a site that is blocked in part the rest may be found.
        exclude_domains: (blockedDomains ?? []).filter((domain) => !/\w\//.test(domain)),
      },
    }),
    results: ({ results }) => results,
    fields: { text: "content", age: "published_date" },
  },
  searxng: {
    title: "SearXNG",
    request: (query, offer, key) => ({
      path: `/search?${new URLSearchParams({ q: withSites(query, offer), format: "json" })}`,
      headers: key === "" ? noHeaders : { authorization: `Bearer ${key}` },
    }),
    results: ({ results }) => results,
    fields: { text: "content", age: "publishedDate" },
  },
};

/** The engine of the config; undefined if a model searches. */
export function searchEngineOf({ webSearchEngine: settings }: Config): SearchEngine | undefined {
  const { name, apiKey = "", url } = settings;
  if (name === "model") return undefined;
  const form = forms[name];
  const address = url ?? form.url;
  if (address === undefined) return undefined;
  return {
    name,
    takes: (query, offer) =>
      isWithin(form.longest, name === "brave" ? withSites(query, { ...offer, blockedDomains: [] }) : query),
    async search(query, offer, controller, answered) {
      const { path, headers, body } = form.request(query, offer, apiKey);
      const response = await callOut(address + path, {
        method: body === undefined ? "GET" : "POST",
        headers: {
          accept: "application/json",
          ...(body === undefined ? {} : { "content-type": "application/json" }),
          ...headers,
        },
        body: body === undefined ? undefined : JSON.stringify(body),
        controller,
        limits: singleLimit(timeoutMs),
        who: form.title,
      });
      answered(response.status);
      if (!response.ok) {
        await readStart(response, 1024);
        throw refused(form.title, response.status);
      }
      const answer = parseJson(await readText(response, maxAnswerBytes));
      if (!isObject(answer)) throw notJson(`${form.title}'s answer`);
      return readPages(form, answer);
    },
  };
}

/** Its own words are left out: they may repeat the query. */
function refused(title: string, status: number): ProxyError {
  if (status === 429) return new ProxyError("rate_limit", `${title} accepts no more searches for now (status 429).`);
  const advice =
    status === 401 || status === 403
      ? `: check \`webSearchEngine\` in the config${title === "SearXNG" ? ", and that the instance permits the format json" : ""}`
      : "";
  return new ProxyError("upstream", `${title} refused the search with status ${status}${advice}.`);
}

function readPages({ results, fields }: EngineForm, answer: Record<string, unknown>): WebPage[] {
  const list = results(answer);
  const textIn = (value: unknown) => (typeof value === "string" ? value.trim() : "");
  return (Array.isArray(list) ? list.filter(isObject) : []).slice(0, pagesWanted).flatMap((result) => {
    const url = textIn(result.url);
    if (!/^https?:\/\//i.test(url) || url.length > longestUrl) return [];
    const [text, age] = [
      beginningOf(textIn(result[fields.text]), longestText),
      beginningOf(textIn(result[fields.age]), longestAge),
    ];
    return [
      {
        url,
        title: beginningOf(textIn(result.title), longestTitle) || url,
        ...(text ? { text } : {}),
        ...(age ? { age } : {}),
      },
    ];
  });
}

const isWithin = (
  { characters, words = Number.POSITIVE_INFINITY }: LongestQuery = { characters: Infinity },
  query: string,
) => query.length <= characters && query.split(/\s+/).length <= words;

/**
 * The query with the client's limits as operators, which most engines understand. Sites that are blocked but for which there
 * is no room are left out of the results afterwards.
 */
function withSites(
  query: string,
  { allowedDomains = [], blockedDomains = [] }: Pick<ServerToolOffer, "allowedDomains" | "blockedDomains">,
  longest?: LongestQuery,
): string {
  // No engine knows `*` in a path. What is blocked only there is left out afterwards.
  const allowed = allowedDomains
    .map((domain) => `site:${domain.includes("*") ? hostOfLimit(domain) : domain}`)
    .join(" OR ");
  const blocked = blockedDomains.filter((domain) => !domain.includes("*")).map((domain) => `-site:${domain}`);
  const wanted = [query, allowed && (allowedDomains.length > 1 ? `(${allowed})` : allowed)].filter((part) => part);
  return blocked.reduce((text, part) => {
    const longer = `${text} ${part}`;
    return isWithin(longest, longer) ? longer : text;
  }, wanted.join(" "));
}

function countryOf({ location }: ServerToolOffer): Record<string, string> {
  const country = location?.country?.toUpperCase() ?? "";
  return /^[A-Z]{2}$/.test(country) ? { country } : {};
}
