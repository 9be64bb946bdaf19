/** Finds the addresses that stand in a conversation: no other page is read. */

import type { Part, Turn } from "../dialects/hub/conversation";
import { type LongText, readUnmarked } from "../net/json/json-skeleton";

/** Characters of an address as it is written. */
const longestWritten = 2_000;
/** How many readings of one address are tried. */
const mostReadings = 64;
/** Milliseconds after which others have their turn. */
const turnMs = 5;

/**
 * Whether the person, a tool or a search has given the address. What only the model has written does not count: it could
 * send what it knows to a server of someone else.
 * @param wanted Without a fragment.
 */
export async function isGiven(wanted: URL, turns: readonly Turn[], whole = readUnmarked): Promise<boolean> {
  let turnEnds = performance.now() + turnMs;
  for (const { text, url } of given(turns)) {
    if (url !== undefined && isSame(url, wanted)) return true;
    // One that is looked at begins with the wanted host, which a page may hold as often as it likes.
    for (const found of text === undefined ? [] : addressesIn(whole(text))) {
      if (mayBe(found, wanted) && readingsOf(found).some((reading) => isSame(reading, wanted))) return true;
      if (performance.now() < turnEnds) continue;
      await new Promise(setImmediate);
      turnEnds = performance.now() + turnMs;
    }
  }
  return false;
}

function* given(turns: readonly Turn[]): Generator<{ text?: LongText; url?: string }> {
  for (const { role, parts } of turns)
    for (const part of parts)
      if (role !== "assistant" || part.kind === "server-result" || part.kind === "foreign") yield* givenIn(part);
}

function* givenIn(part: Part): Generator<{ text?: LongText; url?: string }> {
  if (part.kind === "text") yield { text: part.text };
  else if (part.kind === "tool-result") for (const inner of part.parts) yield* givenIn(inner);
  else if (part.kind === "file-link") yield { url: part.url };
  else if (part.kind === "server-result" && part.output.kind === "pages")
    for (const { url } of part.output.pages) yield { url };
  else if (part.kind === "server-result" && part.output.kind === "document") {
    yield { url: part.output.document.url };
    yield { text: part.output.document.text };
  } else if (part.kind === "foreign") for (const inner of part.instead ?? []) yield* givenIn(inner);
}

function isSame(text: string, wanted: URL): boolean {
  if (text.length > longestWritten) return false;
  const url = URL.parse(text);
  if (!url) return false;
  url.hash = "";
  return url.href === wanted.href;
}

/** All that begins like an address, up to what none has; an empty text for each other `://`. Each character is looked at once. */
function* addressesIn(text: string): Generator<string> {
  for (let at = text.indexOf("://"); at !== -1; at = text.indexOf("://", at)) {
    const scheme = /https?$/i.exec(text.slice(Math.max(0, at - 5), at))?.[0];
    let end = at + 3;
    while (scheme && end < text.length && end - at < longestWritten && !ends.has(text[end]!)) end++;
    yield scheme ? text.slice(at - scheme.length, end) : "";
    at = end;
  }
}

const ends = new Set("\t\n\v\f\r \u00a0\u2028\u2029\u3000\ufeff<>\"'`");

/** Where a sentence or a bracket around the address may end it, in the scripts that put no space after it too. */
const brackets = ")]}）］｝」』】》〉〕”’»";
const signs = new Set(`${brackets}.,;:!?*_|…。、，．；：！？`);
const cuts = new Set(`${brackets}。、，；：！？（［「『【《〈“‘«`);

/** A host that can only be read in one way has to be the wanted one. */
function mayBe(found: string, { hostname }: URL): boolean {
  const host = /^https?:\/\/((?:[a-z0-9-]+\.)*[a-z][a-z0-9-]*)(?=[/:?#]|$)/i.exec(found.slice(0, 300))?.[1];
  return host === undefined || host.toLowerCase() === hostname;
}

/** The address as it stands there, and without what may be the sentence's. */
function readingsOf(found: string): string[] {
  const lengths = new Set([found.length]);
  for (let end = found.length; end > 0 && signs.has(found[end - 1]!) && lengths.size < mostReadings; )
    lengths.add(--end);
  const first = found.search(/[^ -~]/);
  for (let at = "http://".length; at < found.length && lengths.size < 2 * mostReadings; at++)
    if (cuts.has(found[at]!)) lengths.add(at);
  if (first > 0) lengths.add(first);
  return [...lengths].map((length) => found.slice(0, length));
}
