/** Rows: sealed secrets: opened only with their key, and only where they belong. */
import { expect, test } from "bun:test";
import { randomBytes } from "node:crypto";
import { keyIdIn, keyIdOf, Seals } from "../../src/lib/seals";
import fc from "../support/random";

const keys = [randomBytes(32), randomBytes(32)] as const;
const secret = "gho_canary0123456789abcdefghijklmnopqrst";

test("a sealed secret opens with its key, in whatever process", () => {
  fc.assert(
    fc.property(fc.string({ unit: "grapheme" }), fc.string(), (text, about) => {
      const sealed = new Seals(keys[0]).seal(text, about);
      expect(new Seals(keys[0]).open(new Uint8Array(sealed), about)).toBe(text);
    }),
  );
});

test("a sealed secret shows nothing of itself or of its key, and is another text each time", () => {
  const seals = new Seals(keys[0]);
  const [one, other] = [seals.seal(secret, "a"), seals.seal(secret, "a")];
  expect(one.equals(other)).toBe(false);
  for (const hidden of [secret, secret.slice(0, 8), keys[0].toString("latin1").slice(0, 4)])
    expect(one.toString("latin1")).not.toContain(hidden);
  expect(keyIdIn(one)).toBe(keyIdOf(keys[0]));
});

test("a sealed secret does not open for another account, after any change, or without its key", () => {
  const seals = new Seals(keys[0]);
  const sealed = seals.seal(secret, "account github.com/anna");
  expect(() => seals.open(sealed, "account github.com/bert")).toThrow("cannot be opened");
  for (let at = 0; at < sealed.length; at += 1) {
    const changed = Buffer.from(sealed);
    changed[at]! ^= 1;
    expect(() => seals.open(changed, "account github.com/anna")).toThrow();
    expect(() => seals.open(sealed.subarray(0, at), "account github.com/anna")).toThrow("cannot be opened");
  }
  expect(() => new Seals(keys[1]).open(sealed, "account github.com/anna")).toThrow(`the key ${keyIdOf(keys[0])}`);
});

test("what an older version has sealed opens, and its derived secrets are the same", () => {
  const seals = new Seals(Buffer.from("0123456789abcdef0123456789abcdef"));
  const sealed = "01246676d6c8060e188ba71f0749f96ec1064959105a473f45934617a81e70a2886758430cadc95c2731a96ec2a99cca";
  expect(seals.open(Buffer.from(sealed, "hex"), "github token of github.com/octo")).toBe("gho_of_octo");
  expect(seals.derived("page sign-ins").toString("hex")).toBe(
    "b90e1b22ca0859f85d4002fe6fde7f0df1b309c26b1b8af804127fb88f073bf4",
  );
});
