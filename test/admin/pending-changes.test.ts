/** Scenario: a config change that waits for confirmation, sealed in the page that asks for it. */
import { expect, test } from "bun:test";
import { randomBytes } from "node:crypto";
import { PendingChanges } from "../../src/admin/pages/config/pending-changes";

const change = {
  patch: { retentionDays: 3, providers: { x: { apiKey: "sk-1" } } },
  revision: "7",
  form: new URLSearchParams([
    ["retentionDays", "3"],
    ["auth.apiKeys", "ü\n&=one"],
    ["anthropicApiKey", "sk-canary-0815"],
  ]),
};

test("a change is opened as it was prepared by every server with the key, for half an hour", () => {
  const key = randomBytes(32);
  let now = 0;
  const [one, other] = [key, key].map((each) => new PendingChanges(each, () => now));
  const sealed = one!.seal(change);
  const found = other!.open(sealed)!;
  expect([found.patch, found.revision, [...found.form]]).toEqual([change.patch, "7", [...change.form]]);
  now = 30 * 60_000 - 1;
  expect(other!.open(sealed)).toBeDefined();
  now += 1;
  expect(other!.open(sealed)).toBeUndefined();
});

test("a browser can neither read the change nor make one up", () => {
  const [one, foreign] = [randomBytes(32), randomBytes(32)].map((key) => new PendingChanges(key, () => 0));
  const sealed = one!.seal(change);
  expect(Buffer.from(sealed, "base64url").includes("sk-canary-0815")).toBe(false);
  const damaged = Buffer.from(sealed, "base64url");
  damaged[20]! ^= 1;
  for (const wrong of [null, "", "none", sealed.slice(0, -4), damaged.toString("base64url"), foreign!.seal(change)])
    expect(one!.open(wrong), String(wrong)).toBeUndefined();
});
