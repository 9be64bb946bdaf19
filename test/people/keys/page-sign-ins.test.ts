/** Scenario: sign-ins of browsers: signed cookies, which hold for as long as what began them. */
import { expect, test } from "bun:test";
import { createHmac, randomBytes } from "node:crypto";
import { sha256 } from "../../../src/lib/net/in/credentials";
import type { ClientKey } from "../../../src/people/keys/client-keys";
import { memoryEndedPageSignIns, PageSignIns } from "../../../src/people/keys/page-sign-ins";

const owner = { member: null, secret: "an admin token" };
const begun = Date.UTC(2026, 10, 23);

function opened(more: Partial<ConstructorParameters<typeof PageSignIns>[0]> = {}) {
  let now = begun;
  const secret = randomBytes(32);
  const options = {
    ...{ secret, server: "one", now: () => now, adminToken: owner.secret, ended: memoryEndedPageSignIns() },
    ...more,
  };
  const signIns = new PageSignIns(options);
  const wait = (ms: number) => {
    now += ms;
  };
  return { signIns, options, secret, wait };
}
const holds = async (signIns: PageSignIns, cookie: string) => (await signIns.find(cookie))?.holds ?? false;

test("a cookie that was changed, cut, or signed with another key is no sign-in", async () => {
  const { signIns } = opened();
  const cookie = signIns.begin(owner);
  const parts = cookie.split(".");
  const foreign = opened().signIns.begin(owner);
  const text = parts.slice(0, -1).join(".");
  const made = [
    ...parts.map((_, at) => parts.map((part, other) => (other === at ? `${part.slice(0, -1)}~` : part)).join(".")),
    ["b7d0a9a6-6d1a-4a3a-9d0e-0a4b1c2d3e4f", ...parts.slice(1)].join("."),
    [parts[0], parts[1], "zzzzzzzz", ...parts.slice(3)].join("."),
    ...["", ".", "....", text, `${text}.`, `${cookie}x`, foreign],
    `${text}.${createHmac("sha256", "").update(text).digest("base64url")}`,
  ];
  for (const wrong of made) expect(await signIns.find(wrong), wrong).toBeUndefined();
  expect(await holds(signIns, cookie)).toBe(true);
});

test("another admin token ends the sign-ins that it began, and not those of who needed none", async () => {
  const { signIns, options } = opened();
  const [remote, local] = [signIns.begin(owner), signIns.begin({ member: null, secret: "typed on this machine" })];
  const changed = new PageSignIns({ ...options, adminToken: "another one" });
  expect([await holds(changed, remote), await holds(changed, local)]).toEqual([false, true]);
});

test("a sign-in of who needed no token holds at the server on whose machine it began, and at no other of the team", async () => {
  const { signIns, options } = opened();
  const [byToken, byPlace] = [signIns.begin(owner), signIns.begin({ member: null, secret: "typed on this machine" })];
  const other = new PageSignIns({ ...options, server: "other" });
  expect([await holds(signIns, byToken), await holds(signIns, byPlace)]).toEqual([true, true]);
  expect([await holds(other, byToken), await holds(other, byPlace)]).toEqual([true, false]);
  await other.end(byPlace);
  expect(await holds(signIns, byPlace), "nor can another server end it").toBe(true);
});

test("a member's sign-in ends with the key that began it, and waits for a key that is not known yet", async () => {
  const keys = new Map<string, ClientKey>();
  const secret = "drg_key";
  const key = { name: "anna/key-1", member: "anna", digest: sha256(secret), expiresAt: null } as unknown as ClientKey;
  let isKnown = false;
  const { signIns } = opened({
    keys: {
      keyWith: (digest) => keys.get(Buffer.from(digest).toString("hex")),
      hearOf: () => {
        if (isKnown) keys.set(sha256(secret).toString("hex"), key);
      },
    },
  });
  const cookie = signIns.begin({ member: "anna", secret });
  expect([await signIns.find(cookie), signIns.lostKey(cookie)]).toEqual([undefined, true]);
  isKnown = true;
  const view = await signIns.find(cookie);
  expect([view?.member, view?.keyName, view?.holds, signIns.lostKey(cookie)]).toEqual([
    ...["anna", "anna/key-1", true],
    false,
  ]);
  // Nobody is asked about a key that is known, or for the owner, who needs none: the answer is there at once.
  expect(signIns.find(cookie)).toMatchObject({ member: "anna", holds: true });
  expect(signIns.find(signIns.begin(owner))).toMatchObject({ member: null, holds: true });
  for (const wrong of [
    { member: "anna", secret: "drg_wrong" },
    { member: "ben", secret },
  ])
    expect(await signIns.find(signIns.begin(wrong))).toBeUndefined();
  isKnown = false;
  keys.clear();
  expect([view?.holds, await signIns.find(cookie), signIns.lostKey(cookie)]).toEqual([false, undefined, true]);
});
