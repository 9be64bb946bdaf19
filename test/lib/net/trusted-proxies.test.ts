/** Rows: the client's address behind reverse proxies: only what a trusted proxy says counts. */
import { expect, test } from "bun:test";
import { networkOf } from "../../../src/lib/net/address";
import { openTrustedProxies } from "../../../src/lib/net/in/trusted-proxies";
import { startProxy } from "../../support/proxy";

const headers = (forwarded?: string) => new Headers(forwarded === undefined ? {} : { "x-forwarded-for": forwarded });

const { clientOf } = openTrustedProxies(["10.0.0.0/8", "127.0.0.1", "fd00::/8"]);
test.each<[peer: string | null, forwarded: string | undefined, client: string | null, why: string]>([
  ["203.0.113.7", undefined, "203.0.113.7", "no proxy"],
  ["203.0.113.7", "198.51.100.1", "203.0.113.7", "a stranger's header counts for nothing"],
  ["10.1.2.3", "198.51.100.1", "198.51.100.1", "one proxy"],
  ["::ffff:10.1.2.3", "198.51.100.1", "198.51.100.1", "one proxy, of a socket for both families"],
  ["10.1.2.3", "192.0.2.66, 198.51.100.1", "198.51.100.1", "what the client wrote itself is not believed"],
  ["10.1.2.3", "198.51.100.1, 10.9.9.9,  127.0.0.1", "198.51.100.1", "three proxies"],
  ["10.1.2.3", "10.4.4.4", "10.4.4.4", "a client in the same network"],
  ["10.1.2.3", undefined, "10.1.2.3", "a proxy that says nothing"],
  ["10.1.2.3", "unknown", "10.1.2.3", "no address"],
  ["10.1.2.3", "", "10.1.2.3", "empty"],
  ["10.1.2.3", "198.51.100.1:4711", "198.51.100.1", "with a port"],
  ["fd00::1", "[2001:db8::1]:4711", "2001:db8::1", "of the other family, with a port"],
  ["fd00::1", "2001:db8::2", "2001:db8::2", "of the other family"],
  [null, "198.51.100.1", null, "no socket"],
  ["127.0.0.1", undefined, null, "a proxy on this machine that says nothing"],
  ["::ffff:127.0.0.1", "", null, "the same, of a socket for both families"],
])("the client's address: %s, x-forwarded-for %s: %s (%s)", (peer, forwarded, client) => {
  expect(clientOf(peer, headers(forwarded))).toBe(client);
});

test.each(["10.0.0.0/33", "fd00::/129", "10.0.0", "localhost", "10.0.0.0/", "10.0.0.0/8/8", "", "/8"])(
  "the client's address: %s is no range",
  (range) => {
    expect(() => openTrustedProxies([range])).toThrow("neither an address nor a range");
  },
);

test("behind a proxy on this machine that does not name its callers, nobody is the owner without a token", async () => {
  await using proxy = await startProxy({
    env: { ADMIN_TOKEN: "right-0123456789" },
    trustedProxies: openTrustedProxies(["127.0.0.1"]),
  });
  // As a proxy passes it on that sets no header, or was told by its caller to leave one out.
  const as = (headers: Record<string, string>) => fetch(`${proxy.url}/api/admin/config`, { headers });
  expect((await as({})).status).toBe(401);
  expect((await as({ "x-admin-token": "right-0123456789" })).status).toBe(200);
  expect((await fetch(`${proxy.url}/admin`)).status).toBe(401);
  // Whoever did not say that there is a proxy is the owner on this machine, as ever.
  await using usual = await startProxy();
  expect((await fetch(`${usual.url}/api/admin/config`)).status).toBe(200);
});

test.each([
  ["192.0.2.7", "192.0.2.7"],
  ["::ffff:192.0.2.7", "192.0.2.7"],
  ["::1", "0:0:0:0"],
  ["2001:db8::5", "2001:db8:0:0"],
  ["2001:db8:1:2:3:4:5:6", "2001:db8:1:2"],
  ["2001:db8:1:2:3:4:5::", "2001:db8:1:2"],
  ["2001:db8::3:4:5:6:7", "2001:db8:0:3"],
  ["2001:db8::2:3:4:5:6:7", "2001:db8:2:3"],
])("who calls from %s is of the network %s", (address, network) => expect(networkOf(address)).toBe(network));
