import { describe, expect, test } from "bun:test";
import { ProxyError } from "../../src/errors";
import { inspect, isLoopbackAddress, refuseMethods, refuseStrangers } from "../../src/net/guard";

const lists = { hosts: new Set(["my-machine", "proxy.example"]), origins: new Set(["http://localhost:3000"]) };

function visit(headers: Record<string, string>, { peer = "127.0.0.1" as string | null, method = "GET" } = {}) {
  const request = new Request("http://placeholder/v1/models", {
    method,
    headers: { host: "localhost:4141", ...headers },
  });
  return { request, caller: inspect(request, peer, lists) };
}

function refusal(headers: Record<string, string>): ProxyError | undefined {
  const { request, caller } = visit(headers);
  try {
    refuseStrangers(caller, request, lists.origins);
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
  ])
    test(JSON.stringify(host), () => expect(() => visit({ host })).toThrow("Host header"));
});

describe("methods nobody serves are answered 405", () => {
  for (const method of ["PUT", "DELETE", "PATCH"])
    test(method, () =>
      expect(() => refuseMethods(visit({}, { method }).request)).toThrow(expect.objectContaining({ status: 405 })),
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

  test("the sentence names the config line that would allow it", () => {
    expect(refusal({ origin: "https://my.app" })?.message).toContain(
      'https://my.app may not call this address. To allow it, add that origin to "allowedOrigins"',
    );
    expect(refusal({ host: "box.lan" })?.message).toContain('"allowedHosts"');
  });
});

describe("local means this machine, its name, no proxy and no foreign page", () => {
  test.each([[{}], [{ host: "[::1]:4141" }], [{ host: "127.0.0.2" }]] as Record<string, string>[][])(
    "%j is local",
    (headers) => expect(visit(headers!).caller.local).toBe(true),
  );

  const forwarding = [
    "forwarded",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-real-ip",
    "via",
    "cf-connecting-ip",
    "true-client-ip",
    "x-client-ip",
    "x-envoy-external-address",
    "tailscale-user-login",
  ];
  for (const name of forwarding)
    test(`not with ${name}`, () => expect(visit({ [name]: "127.0.0.1" }).caller.local).toBe(false));
  for (const peer of ["192.168.1.7", "172.17.0.1", "::ffff:10.0.0.1", null])
    test(`not from ${peer}`, () => expect(visit({}, { peer }).caller.local).toBe(false));
  for (const host of ["192.168.1.7", "proxy.example", "evil.example"])
    test(`not as ${host}`, () => expect(visit({ host }).caller.local).toBe(false));
  test("not from a page", () => expect(visit({ origin: "http://localhost:3000" }).caller.local).toBe(false));
  test("a twin of a forwarding header with underscores changes nothing", () =>
    expect(visit({ x_forwarded_for: "1.2.3.4" }).caller.local).toBe(true));

  test("loopback addresses in each spelling of a socket", () => {
    for (const address of ["127.0.0.1", "127.8.9.10", "::1", "::ffff:127.0.0.1"])
      expect(isLoopbackAddress(address)).toBe(true);
    for (const address of ["128.0.0.1", "::2", "::ffff:192.168.0.1", "1270.0.0.1", ""])
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
