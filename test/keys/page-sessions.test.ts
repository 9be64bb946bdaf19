/** Sessions of browsers: signed cookies, which hold for as long as what began them. */
import { expect, test } from "bun:test";
import { createHmac, randomBytes } from "node:crypto";
import { hourMs } from "../../src/format";
import type { ClientKey } from "../../src/keys/client-keys";
import { memoryEndedSessions, PageSessions } from "../../src/keys/page-sessions";
import { sha256 } from "../../src/net/in/credentials";

const owner = { member: null, secret: "an admin token" };
const begun = Date.UTC(2026, 10, 23);

function opened(more: Partial<ConstructorParameters<typeof PageSessions>[0]> = {}) {
  let now = begun;
  const secret = randomBytes(32);
  const options = {
    ...{ secret, server: "one", now: () => now, adminToken: owner.secret, ended: memoryEndedSessions() },
    ...more,
  };
  const sessions = new PageSessions(options);
  const wait = (ms: number) => {
    now += ms;
  };
  return { sessions, options, secret, wait };
}
const holds = async (sessions: PageSessions, cookie: string) => (await sessions.find(cookie))?.holds ?? false;

test("a session is found by its cookie until it is signed out, and another one goes on", async () => {
  const { sessions } = opened();
  const [one, other] = [sessions.begin(owner), sessions.begin(owner)];
  const view = await sessions.find(one);
  expect([view?.member, view?.holds, await holds(sessions, other)]).toEqual([null, true, true]);
  expect(sessions.lostKey(one), "the owner has no key that could be lost").toBe(false);
  await sessions.end(one);
  expect([view?.holds, await holds(sessions, one), await holds(sessions, other)]).toEqual([false, false, true]);
  await sessions.end(one);
  await sessions.end("none");
});

test("a session expires after twelve hours, also for a view that is open", async () => {
  const { sessions, wait } = opened();
  const cookie = sessions.begin(owner);
  const view = await sessions.find(cookie);
  wait(12 * hourMs - 1);
  expect([view?.holds, await holds(sessions, cookie)]).toEqual([true, true]);
  wait(1);
  expect([view?.holds, await holds(sessions, cookie)]).toEqual([false, false]);
});

test("a cookie that was changed, cut, or signed with another key is no session", async () => {
  const { sessions } = opened();
  const cookie = sessions.begin(owner);
  const parts = cookie.split(".");
  const foreign = opened().sessions.begin(owner);
  const text = parts.slice(0, -1).join(".");
  const made = [
    ...parts.map((_, at) => parts.map((part, other) => (other === at ? `${part.slice(0, -1)}~` : part)).join(".")),
    ["b7d0a9a6-6d1a-4a3a-9d0e-0a4b1c2d3e4f", ...parts.slice(1)].join("."),
    [parts[0], parts[1], "zzzzzzzz", ...parts.slice(3)].join("."),
    ...["", ".", "....", text, `${text}.`, `${cookie}x`, foreign],
    `${text}.${createHmac("sha256", "").update(text).digest("base64url")}`,
  ];
  for (const wrong of made) expect(await sessions.find(wrong), wrong).toBeUndefined();
  expect(await holds(sessions, cookie)).toBe(true);
});

test("another admin token ends the sessions that it began, and not those of who needed none", async () => {
  const { sessions, options } = opened();
  const [remote, local] = [sessions.begin(owner), sessions.begin({ member: null, secret: "typed on this machine" })];
  const changed = new PageSessions({ ...options, adminToken: "another one" });
  expect([await holds(changed, remote), await holds(changed, local)]).toEqual([false, true]);
});

test("a session of who needed no token holds at the server on whose machine it began, and at no other of the team", async () => {
  const { sessions, options } = opened();
  const [byToken, byPlace] = [sessions.begin(owner), sessions.begin({ member: null, secret: "typed on this machine" })];
  const other = new PageSessions({ ...options, server: "other" });
  expect([await holds(sessions, byToken), await holds(sessions, byPlace)]).toEqual([true, true]);
  expect([await holds(other, byToken), await holds(other, byPlace)]).toEqual([true, false]);
  await other.end(byPlace);
  expect(await holds(sessions, byPlace), "nor can another server end it").toBe(true);
});

test("a member's session ends with the key that began it, and waits for a key that is not known yet", async () => {
  const keys = new Map<string, ClientKey>();
  const secret = "drg_key";
  const key = { name: "anna/key-1", member: "anna", digest: sha256(secret), expiresAt: null } as unknown as ClientKey;
  let isKnown = false;
  const { sessions } = opened({
    keys: {
      keyWith: (digest) => keys.get(Buffer.from(digest).toString("hex")),
      catchUp: async () => {
        if (isKnown) keys.set(sha256(secret).toString("hex"), key);
      },
    },
  });
  const cookie = sessions.begin({ member: "anna", secret });
  expect([await sessions.find(cookie), sessions.lostKey(cookie)]).toEqual([undefined, true]);
  isKnown = true;
  const view = await sessions.find(cookie);
  expect([view?.member, view?.keyName, view?.holds, sessions.lostKey(cookie)]).toEqual([
    ...["anna", "anna/key-1", true],
    false,
  ]);
  // Nobody is asked about a key that is known, or for the owner, who needs none: the answer is there at once.
  expect(sessions.find(cookie)).toMatchObject({ member: "anna", holds: true });
  expect(sessions.find(sessions.begin(owner))).toMatchObject({ member: null, holds: true });
  for (const wrong of [
    { member: "anna", secret: "drg_wrong" },
    { member: "ben", secret },
  ])
    expect(await sessions.find(sessions.begin(wrong))).toBeUndefined();
  isKnown = false;
  keys.clear();
  expect([view?.holds, await sessions.find(cookie), sessions.lostKey(cookie)]).toEqual([false, undefined, true]);
});
