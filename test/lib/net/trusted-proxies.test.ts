/** Pairs: the client's address behind reverse proxies: only what a trusted proxy says counts. */
import { expect, test } from "bun:test";
import { networkOf } from "../../../src/lib/net/address";
import { openTrustedProxies } from "../../../src/lib/net/in/trusted-proxies";
import { outOf, testPairs } from "../../support/pairs";
import { startProxy } from "../../support/proxy";

const { clientOf } = openTrustedProxies(["10.0.0.0/8", "127.0.0.1", "fd00::/8"]);
testPairs("net", {
  "client-of": (peer: string | null, forwarded: string | null) =>
    clientOf(peer, new Headers(forwarded === null ? {} : { "x-forwarded-for": forwarded })),
  range: (range: string) => outOf(() => void openTrustedProxies([range])),
  network: networkOf,
});

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
