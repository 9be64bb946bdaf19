import { describe, expect, test } from "bun:test";
import { parseConfig } from "../../src/config/schema";
import { ProxyError } from "../../src/errors";
import { inspect, isLoopbackAddress, refuseMethods, refuseStrangers } from "../../src/net/guard";

const lists = { hosts: new Set(["my-machine", "proxy.example"]), origins: new Set(["http://localhost:3000"]) };

function visit(
  headers: Record<string, string>,
  {
    peer = "127.0.0.1" as string | null,
    method = "GET",
    hosts = lists.hosts,
    bound = undefined as string | undefined,
  } = {},
) {
  const request = new Request("http://placeholder/v1/models", {
    method,
    headers: { host: "localhost:4141", ...headers },
  });
  return { request, caller: inspect(request, peer, { ...lists, hosts, bound }) };
}

function refusal(headers: Record<string, string>): ProxyError | undefined {
  try {
    refuseStrangers(visit(headers).caller, lists.origins);
  } catch (thrown) {
    if (thrown instanceof ProxyError) return thrown;
    throw thrown;
  }
}

describe("a Host header that could mislead a router is answered 400", () => {
  for (const host of [
    "a b",
    "evil@localhost",
    "localhost#x",
    "localhost/x",
    "",
    "a, b",
    "-x",
    "localhost:",
    "[::1",
    "localhost:123456",
    "a..b",
    "a.-b",
    "a".repeat(254),
  ])
    test(JSON.stringify(host), () => expect(() => visit({ host })).toThrow("Host header"));
});

describe("methods without a route are answered 405", () => {
  for (const method of ["PUT", "DELETE", "PATCH"])
    test(method, () =>
      expect(() => refuseMethods(visit({}, { method }).request, () => ["GET"])).toThrow(
        expect.objectContaining({ status: 405 }),
      ),
    );
});

describe("which name was called", () => {
  test.each([
    ["localhost:4141", "loopback"],
    ["LOCALHOST", "loopback"],
    ["127.0.0.2:1", "loopback"],
    ["[::1]:4141", "loopback"],
    ["192.168.1.7:4141", "address"],
    ["[fe80::1]", "address"],
    ["my-machine:4141", "named"],
    ["Proxy.Example", "named"],
    ["0.0.0.0:4141", "other"],
    ["localhost.", "other"],
    ["foo.localhost", "other"],
    ["localhost.evil.example", "other"],
    ["127.0.0.1.nip.io", "other"],
    ["2130706433", "other"],
    ["0x7f.1", "other"],
    ["127.1", "other"],
    ["evil.example:4141", "other"],
  ] as const)("%s is %s", (host, kind) => {
    if (host === "localhost.") expect(() => visit({ host })).toThrow("Host header");
    else expect(visit({ host }).caller.host).toBe(kind);
  });
});

describe("pages of other origins are refused where no key is needed", () => {
  test.each([
    [{ origin: "https://evil.example" }],
    [{ origin: "null" }],
    [{ origin: "http://localhost.evil.example" }],
    [{ origin: "http://localhost:4141.evil.example" }],
    [{ origin: "https://localhost:4141" }],
    [{ origin: "http://evil.example?localhost" }],
    [{ origin: "http://localhost:30001" }],
    [{ origin: "http://LOCALHOST:3000" }],
    [{ origin: "http://localhost:4141, http://evil.example" }],
    [{ "sec-fetch-site": "cross-site" }],
    [{ "sec-fetch-site": "same-site" }],
    [{ host: "evil.example:4141", origin: "http://evil.example:4141" }],
    [{ host: "evil.example:4141" }],
    [{ host: "0.0.0.0:4141" }],
  ] as Record<string, string>[][])("%j", (headers) => expect(refusal(headers!)?.status).toBe(403));

  test.each([
    [{}],
    [{ origin: "http://localhost:4141" }],
    [{ origin: "http://127.0.0.1:4141" }],
    [{ origin: "http://localhost:3000" }],
    [{ "sec-fetch-site": "same-origin" }],
    [{ "sec-fetch-site": "none" }],
    [{ host: "192.168.1.7:4141" }],
    [{ host: "proxy.example", origin: "https://proxy.example" }],
  ] as Record<string, string>[][])("not %j", (headers) => expect(refusal(headers!)).toBeUndefined());

  /** The config line that a refusal names, as a part of a config. */
  const lineIn = (sentence = "") => JSON.parse(`{${/"\w+": \["[^"]*"\]/.exec(sentence)?.[0]}}`);

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
    const config = parseConfig(lineIn(refusal({ host })?.message));
    expect(config.allowedHosts).toHaveLength(1);
    const { caller } = visit({ host }, { hosts: new Set(config.allowedHosts) });
    expect([caller.host, caller.local]).toEqual(["named", false]);
    expect(() => refuseStrangers(caller, lists.origins)).not.toThrow();
  });

  test.each(["https://my.app", "http://localhost:5173", "vscode-webview://abc", "chrome-extension://abcdef"])(
    "the sentence about the page at %s names a config line, which is accepted and lets it in",
    (origin) => {
      const config = parseConfig(lineIn(refusal({ origin })?.message));
      expect(() => refuseStrangers(visit({ origin }).caller, new Set(config.allowedOrigins))).not.toThrow();
    },
  );

  test.each(["null", "http://localhost:4141, http://evil.example", "http://a b", `http://${"a".repeat(300)}.example`])(
    "the sentence about the page at %s names no line that would be refused",
    (origin) => expect(refusal({ origin })?.message).not.toContain("allowedOrigins"),
  );
});

describe("local means this machine, its name, no proxy and no foreign page", () => {
  test.each([[{}], [{ host: "[::1]:4141" }], [{ host: "127.0.0.2" }]] as Record<string, string>[][])(
    "%j is local",
    (headers) => expect(visit(headers!).caller.local).toBe(true),
  );

  const forwarding = [
    "forwarded",
    "via",
    "cdn-loop",
    "x-forwarded",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-proto",
    "x-forwarded-server",
    "x-forwarded-client-cert",
    "x-original-forwarded-for",
    "x-real-ip",
    "x-client-ip",
    "client-ip",
    "x-cluster-client-ip",
    "x-originating-ip",
    "x-remote-ip",
    "cf-connecting-ip",
    "cf-connecting-ipv6",
    "cf-ray",
    "cf-visitor",
    "true-client-ip",
    "akamai-origin-hop",
    "fastly-client-ip",
    "fly-client-ip",
    "fly-forwarded-proto",
    "do-connecting-ip",
    "x-nf-client-connection-ip",
    "x-vercel-forwarded-for",
    "x-varnish",
    "x-envoy-external-address",
    "x-azure-clientip",
    "x-azure-fdid",
    "x-appengine-user-ip",
    "x-amzn-trace-id",
    "x-arr-ssl",
    "proxy-client-ip",
    "wl-proxy-client-ip",
    "tailscale-user-login",
  ];
  for (const name of forwarding)
    test(`not with ${name}`, () => {
      const { local, forwardedBy } = visit({ [name]: "127.0.0.1" }).caller;
      expect({ local, forwardedBy }).toEqual({ local: false, forwardedBy: name });
    });

  const ofClients = {
    accept: "*/*",
    "anthropic-version": "2023-06-01",
    "x-api-key": "k",
    "x-app": "cli",
    "x-stainless-lang": "js",
    "x-client-request-id": "1",
    "x-claude-code-session-id": "1",
    "x-session-affinity": "1",
    "x-requested-with": "fetch",
    "x-initiator": "user",
    "x-github-api-version": "2025-05-01",
    "openai-organization": "o",
    "sec-fetch-site": "same-origin",
    traceparent: "00-0-0-01",
    session_id: "1",
  };
  test("what clients and SDKs send of themselves is no sign of a proxy", () =>
    expect(visit(ofClients).caller.local).toBe(true));

  test.each(["vm", "vm:4141", "VM"])("as %s, where that is the name it listens on", (host) => {
    expect(visit({ host }, { bound: "vm" }).caller).toMatchObject({ host: "bound", local: true });
    expect(visit({ host }, { bound: "vm", peer: "192.168.1.7" }).caller.local).toBe(false);
    expect(visit({ host: "vm.example" }, { bound: "vm" }).caller.local).toBe(false);
  });

  for (const peer of ["192.168.1.7", "172.17.0.1", "::ffff:10.0.0.1", null])
    test(`not from ${peer}`, () => expect(visit({}, { peer }).caller.local).toBe(false));
  for (const host of ["192.168.1.7", "proxy.example", "evil.example"])
    test(`not as ${host}`, () => expect(visit({ host }).caller.local).toBe(false));
  test("not from a page", () => expect(visit({ origin: "http://localhost:3000" }).caller.local).toBe(false));
  test("a twin of a forwarding header with underscores changes nothing", () =>
    expect(visit({ x_forwarded_for: "1.2.3.4" }).caller.local).toBe(true));

  test("loopback addresses in each spelling of a socket", () => {
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
});

test("the request id is ours and new each time", () => {
  const ids = [visit({ "x-request-id": "mine" }), visit({ "x-request-id": "mine" })].map(
    ({ caller }) => caller.requestId,
  );
  expect(ids[0]).not.toBe(ids[1]);
  expect(ids.join()).not.toContain("mine");
});
