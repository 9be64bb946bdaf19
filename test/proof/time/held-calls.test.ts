/**
 * Rows: a promise in time: each place that reads 1 MB of a stranger's text at once holds the thread that serves
 * everybody for less than 50 ms. What is measured is the thread's own work, the least of eight.
 */
import { describe, expect, test } from "bun:test";
import { parseWithSource } from "../../../src/lib/json";
import { createLogger } from "../../../src/lib/logger";
import { editMembers } from "../../../src/lib/net/json/json-edit";
import { skeletonOf } from "../../../src/lib/net/json/json-skeleton";
import { matchesPattern } from "../../../src/people/keys/client-keys";
import { citationsIn } from "../../../src/proxy/server-tools/citations";
import { isAllowedPage } from "../../../src/proxy/server-tools/web-search";
import { imageTokens } from "../../../src/proxy/tokens/image-size";
import { refusedParam } from "../../../src/proxy/upstream/copilot/unsupported-params";
import { writtenOf } from "../../../src/proxy/upstream/upstream-error";
import { hostileTexts, mostHeldMs, workOf } from "../../support/held";

const mebibyte = 1024 * 1024;
const texts = Object.entries(hostileTexts).map(([name, make]) => [name, make(mebibyte)] as const);

/** Each place that reads a stranger's text at once, and how. */
const places: Record<string, (text: string) => unknown> = {
  "a line of the log": (text) => quiet.info(text),
  "an error without secrets": (text) => quiet.withoutSecrets(text),
  "what is written down of an error": (text) =>
    writtenOf({ code: text, errorType: text, message: text, param: text }, { who: "It" }),
  "the parameter that an error names": (text) => refusedParam({ code: text, message: text, param: text }),
  "a citation of pages": (text) => citationsIn(text, [{ url: "http://x", title: "X" }]),
  "a citation of a page again and again": (text) =>
    citationsIn(`${text.slice(0, 298)}http://y `.repeat(3_400), [{ url: "http://y", title: "Y" }]),
  "a limit of sites": (text) => isAllowedPage(text, { allowedDomains: [text], blockedDomains: ["x/*a*b"] }),
  "a pattern of model names": (text) => matchesPattern("*a*-*://*", text),
  "the size of an image": (text) => imageTokens(text),
  "the numbers of a JSON": (text) => parseWithSource(text),
  "an edit of a JSON": (text) => editMembers(json(text), { b: 1 }, []),
  "the skeleton of a JSON": (text) => skeletonOf(Buffer.from(json(text))),
};

/** 1 MB as it is sent. */
const json = (text: string) => JSON.stringify({ a: text.slice(0, mebibyte / 6) });

const quiet = createLogger(
  () => "info",
  () => {},
);

describe.each(Object.entries(places))("%s", (_place, read) => {
  test.each(texts)("a call is read at once in 1 MB of %s", (_name, text) => {
    expect(workOf(() => read(text))).toBeLessThan(mostHeldMs);
  });
});
