/**
 * Rows: what the guard makes of a caller where no request on loopback can show it. Who may ask what is in test/access.
 */
import { expect, test } from "bun:test";
import { parseConfig } from "../../../src/config/schema";
import { isLoopbackAddress } from "../../../src/lib/net/address";
import { foreignPage, inspect, refuseStrangers } from "../../../src/lib/net/in/caller";
import { noConnection } from "../../support/exchange";
import { refusalOf } from "../../support/refusal";

const origins = new Set(["http://localhost:3000"]);

function callerOf(
  headers: Record<string, string>,
  {
    peer = "127.0.0.1" as string | null,
    hosts = new Set<string>(),
    bound = undefined as string | undefined,
    isFromTrustedProxy = false,
  } = {},
) {
  const request = new Request("http://placeholder/v1/models", { headers: { host: "localhost:4141", ...headers } });
  const connection = { ...noConnection, peer, isFromTrustedProxy };
  return inspect(request, { hosts, origins, bound }, connection);
}

const refusal = (headers: Record<string, string>) =>
  refusalOf(() => refuseStrangers(callerOf(headers), [...origins])).message;

/** The config line that a refusal names, as a part of a config. */
const lineIn = (sentence: string) => JSON.parse(`{${/"\w+": \["[^"]*"\]/.exec(sentence)?.[0]}}`);

test.each([
  "box.lan",
  "box.lan:4141",
  "BOX.lan",
  "ai_dragoman_1:4141",
  "_x",
  "0.0.0.0",
  "2130706433",
  "0x7f.1",
  "xn--bcher-kva.example",
  `${"a.".repeat(126)}a`,
])("the sentence about the name %s names a config line, which is accepted and lets it in", (host) => {
  const config = parseConfig(lineIn(refusal({ host })));
  expect(config.allowedHosts).toHaveLength(1);
  const caller = callerOf({ host }, { hosts: new Set(config.allowedHosts) });
  expect([caller.host, caller.local]).toEqual(["named", false]);
  expect(() => refuseStrangers(caller, [...origins])).not.toThrow();
});

test.each([
  [true, "https", "https://localhost:4141", false],
  [true, "https", "https://LocalHost:4141", false],
  [false, "https", "https://localhost:4141", true],
  [true, "http", "https://localhost:4141", true],
  [true, "https", "https://localhost:4142", true],
  [true, "https", "https://evil.example", true],
])("a trusted proxy (%p) that says %s: a page at %s is foreign: %p", (isFromTrustedProxy, scheme, origin, foreign) => {
  const headers = { origin, "x-forwarded-proto": scheme };
  expect(callerOf(headers, { isFromTrustedProxy }).foreign).toBe(foreign);
});

test.each(["https://my.app", "http://localhost:5173", "vscode-webview://abc", "chrome-extension://abcdef"])(
  "the sentence about the page at %s names a config line, which is accepted and lets it in",
  (origin) => {
    const config = parseConfig(lineIn(refusal({ origin })));
    expect(() => refuseStrangers(callerOf({ origin }), config.allowedOrigins)).not.toThrow();
  },
);

test.each(["null", "http://localhost:4141, http://evil.example", "http://a b", `http://${"a".repeat(300)}.example`])(
  "the sentence about the page at %s names no line that would be refused",
  (origin) => expect(refusal({ origin })).not.toContain("allowedOrigins"),
);

test.each(["192.168.1.7", "172.17.0.1", "::ffff:10.0.0.1", null])(
  "a caller whose socket is at %s is not local, whatever name it calls",
  (peer) => {
    expect(callerOf({}, { peer }).local).toBe(false);
    expect(callerOf({ host: "vm" }, { bound: "vm", peer })).toMatchObject({ host: "bound", local: false });
  },
);

test("a loopback address is known in each spelling of a socket, and nothing else is taken for one", () => {
  for (const address of ["127.0.0.1", "127.8.9.10", "::1", "::ffff:127.0.0.1", "::FFFF:127.0.0.1", "::ffff:7f00:1"])
    expect(isLoopbackAddress(address)).toBe(true);
  for (const address of [
    "128.0.0.1",
    "::2",
    "::ffff:192.168.0.1",
    "::ffff:c0a8:1",
    "::ffff:7f0:1",
    "1270.0.0.1",
    "127.0.0.256",
    "127.0.0.1.example",
    "x127.0.0.1",
    "",
  ])
    expect(isLoopbackAddress(address)).toBe(false);
});

test("a caller on this machine is local unless a page of another origin or a proxy asks for somebody else", () => {
  expect(callerOf({}).local).toBe(true);
  expect(callerOf({ origin: "http://localhost:4141" }).local).toBe(true);
  expect(callerOf({ origin: "http://evil.example" }).local).toBe(false);
  expect(callerOf({ "x-forwarded-for": "10.0.0.1" }).local).toBe(false);
  expect(callerOf({ host: "box.lan" }).local).toBe(false);
});

test("a hostile origin is named in an error from its first character on, and cut", () => {
  const long = `https://${"a".repeat(300)}.example`;
  expect(foreignPage(long).message).toStartWith(`A web page at ${long.slice(0, 200)} may not call this address.`);
});

test("a caller of whom no connection is known is no socket, and cannot become one", () => {
  const caller = callerOf({});
  expect(caller.connection.isSocket).toBe(false);
  expect(caller.connection.upgrade(() => expect.unreachable())).toBe(false);
});
