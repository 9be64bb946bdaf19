/** Scenario: members in a data folder: what is on the disk, and what two processes know of each other. */
import { Database } from "bun:sqlite";
import { expect, jest, test } from "bun:test";
import { cpSync, readdirSync, readFileSync, renameSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { readEnvironment } from "../../../src/config/environment";
import { hourMs } from "../../../src/lib/format";
import { openLocalStores } from "../../../src/parts/local-stores";
import { newClientKey } from "../../../src/people/keys/client-keys";
import { temporaryFolder } from "../../support/temporary-folder";
import { until } from "../../support/until";

const openIn = (home: string, more: Record<string, string> = {}, follow = false) =>
  openLocalStores(readEnvironment({ HOME: home, DRAGOMAN_HOME: home, ...more }), { follow, write() {} });

/** A member with a key and an account. */
async function withMember(home: string, stores = openIn(home)) {
  const { code } = await stores.members.invite("anna");
  const { member, key } = (await stores.members.accept(code))!;
  const account = { login: "anna-octo", host: "github.com", app: "vscode", mode: "exchange", addedAt: 1 } as const;
  stores.accounts.add({ ...account, githubToken: "gho_of_anna_0123456789", member: member.id });
  return { stores, member, key };
}

test("a member's token, key and link are in no file, and the seal key is in a file of its user alone", async () => {
  const home = temporaryFolder();
  const { stores, key } = await withMember(home);
  const open = await stores.members.invite("ben");
  await stores.close();
  const files = readdirSync(home, { recursive: true, encoding: "utf8" }).filter((name) =>
    statSync(join(home, name)).isFile(),
  );
  const text = files.map((name) => readFileSync(join(home, name), "latin1")).join("\n");
  for (const secret of ["gho_of_anna_0123456789", key, open.code]) expect(text).not.toContain(secret);
  expect(files).toContain("seal.key");
  expect(statSync(join(home, "seal.key")).mode & 0o777).toBe(0o600);
  const again = openIn(home);
  expect(again.accounts.load()).toMatchObject([{ login: "anna-octo", githubToken: "gho_of_anna_0123456789" }]);
  // Without the file of the key, the folder says nothing of the token.
  rmSync(join(home, "seal.key"));
  const other = openIn(home, { DRAGOMAN_SEAL_KEY: Buffer.alloc(32, 1).toString("base64") });
  expect(other.accounts.load()).toEqual([]);
});

test("a link that was used stays so when a later one is withdrawn, and only an open one is taken back", async () => {
  const { members } = openIn(temporaryFolder());
  const { code } = await members.invite("anna");
  await members.accept(code);
  expect(await members.withdrawInvitations("anna")).toBe(0);
  const [replaced, last] = [await members.invite("anna"), await members.invite("anna")];
  expect(await members.withdrawInvitations("anna")).toBe(1);
  const names = [code, replaced.code, last.code].map(async (each) => (await members.invitationWith(each))?.name);
  expect(await Promise.all(names)).toEqual(["used", "withdrawn", "withdrawn"]);
});

test("with a seal key of the environment no file of one is made, and another key opens nothing", async () => {
  const home = temporaryFolder();
  const env = (byte: number) => ({ DRAGOMAN_SEAL_KEY: Buffer.alloc(32, byte).toString("base64") });
  const { stores } = await withMember(home, openIn(home, env(1)));
  await stores.close();
  expect(readdirSync(home)).not.toContain("seal.key");
  expect(openIn(home, env(1)).accounts.load()).toMatchObject([{ login: "anna-octo" }]);
  expect(openIn(home, env(2)).accounts.load()).toEqual([]);
});

test("a file of an older version gets the columns that it lacks, and one that cannot be read is no list without members", async () => {
  const home = temporaryFolder();
  const { stores, member } = await withMember(home);
  await stores.close();
  const inFile = (statement: string) => {
    using file = new Database(join(home, "members.sqlite"));
    file.run(statement);
  };
  inFile("ALTER TABLE members DROP COLUMN key_days");
  const later = openIn(home);
  await later.members.setLimits("anna", { key_days: 30 });
  expect(later.members.find(member.id)).toMatchObject({ name: "anna", key_days: 30 });
  await later.close();
  inFile("ALTER TABLE members RENAME COLUMN name TO was_name");
  const without = openIn(home);
  await without.members.hearAll();
  expect(() => without.members.requireHeard()).toThrow("The file of members cannot be used now");
  await without.close();
});

test("a server removes once an hour what is long over, and makes no file of members where there are none", async () => {
  jest.useFakeTimers();
  const home = temporaryFolder();
  const stores = openIn(home, {}, true);
  try {
    jest.advanceTimersByTime(hourMs);
    await Promise.resolve();
    expect(readdirSync(home)).not.toContain("members.sqlite");
    await stores.members.invite("anna");
    using file = new Database(join(home, "members.sqlite"));
    file.run("UPDATE invitations SET expires_at_ms = 0");
    for (const [ms, count] of [
      [hourMs - 1, 1],
      [1, 0],
    ] as const) {
      jest.advanceTimersByTime(ms);
      await Promise.resolve();
      expect(file.query("SELECT * FROM invitations").all()).toHaveLength(count);
    }
  } finally {
    jest.useRealTimers();
    await stores.close();
  }
});

test("a copy of the data folder, made while no server runs, has members, keys and accounts as they were", async () => {
  const home = temporaryFolder();
  const { stores, member, key } = await withMember(home);
  await stores.close();
  const copy = join(temporaryFolder(), "restored");
  cpSync(home, copy, { recursive: true });
  rmSync(home, { recursive: true });
  const restored = openIn(copy);
  await restored.members.hear([key]);
  expect(restored.members.needKeys).toBe(true);
  expect(restored.members.list()).toMatchObject([{ id: member.id, name: "anna" }]);
  expect(restored.members.findKey([key])).toMatchObject({ member: member.id });
  expect(restored.accounts.load()).toMatchObject([
    { login: "anna-octo", githubToken: "gho_of_anna_0123456789", member: member.id },
  ]);
});

test("a pause and an order of a member's accounts last; removing the member removes them", async () => {
  const home = temporaryFolder();
  const { stores, member } = await withMember(home);
  await stores.accounts.choices!.pause(member.id, "github.com/anna-octo", true);
  await stores.accounts.choices!.arrange(member.id, ["github.com/anna-octo"]);
  const again = openIn(home).accounts;
  again.load();
  expect([again.choices!.isPaused("github.com/anna-octo"), again.choices!.placeOf("github.com/anna-octo")]).toEqual([
    true,
    0,
  ]);
  await expect(stores.accounts.choices!.pause("another", "github.com/anna-octo", false)).rejects.toThrow("no account");
  await stores.members.remove("anna");
  expect(again.load()).toEqual([]);
});

test("removing a member removes their accounts also where the seal key is not there, so that they do not come back with it", async () => {
  const home = temporaryFolder();
  const { stores } = await withMember(home);
  await stores.close();
  const without = openIn(home, { DRAGOMAN_SEAL_KEY: Buffer.alloc(32, 1).toString("base64") });
  renameSync(join(home, "seal.key"), join(home, "kept"));
  await without.members.remove("anna");
  await without.close();
  renameSync(join(home, "kept"), join(home, "seal.key"));
  expect(openIn(home).accounts.load()).toEqual([]);
});

test("what a command changes, a server knows within a second; a lock of another process is waited for", async () => {
  const home = temporaryFolder();
  const { stores: command, member, key } = await withMember(home);
  const server = openIn(home);
  expect(server.members.needKeys).toBe(true);
  await server.members.hear([key]);
  expect(server.members.findKey([key])).toMatchObject({ name: "anna/key-1", member: member.id });
  const held = new Database(join(home, "members.sqlite"));
  held.run("BEGIN IMMEDIATE");
  const revoked = command.members.revokeKey(member.id, "key-1");
  await Bun.sleep(150);
  held.run("COMMIT");
  held.close();
  await revoked;
  await until(async () => {
    await server.members.hear([key]);
    return server.members.findKey([key]) === undefined;
  }, "the server knows that the key is revoked");
});

test("after a change here nothing counts that was asked for before it, and each key that is sent is asked for", async () => {
  const home = temporaryFolder();
  const { stores: command, member, key } = await withMember(home);
  const { members } = openIn(home);
  // A second of remembering is not over in between.
  await members.hearAll();
  await command.members.invite("ben");
  await members.setLimits("anna", { key_days: 30 });
  await members.hearAll();
  expect(members.list().map(({ name }) => name)).toEqual(["anna", "ben"]);
  for (const sent of [
    [newClientKey(), key],
    [key, newClientKey()],
  ]) {
    const { members: other } = openIn(home);
    await other.hear(sent);
    expect(other.findKey(sent)).toMatchObject({ member: member.id });
  }
});

test("two who use one link at once, and two keys of one name, are one each; what throws changes nothing", async () => {
  const { stores, member, key } = await withMember(temporaryFolder());
  const { members } = stores;
  const { code } = await members.invite("anna");
  const accepted = await Promise.all([members.accept(code), members.accept(code)]);
  expect(accepted.filter((each) => each !== undefined)).toHaveLength(1);
  const by = new Bun.CryptoHasher("sha256").update(key).digest();
  const make = () => members.createKey(member.id, { name: "laptop", models: null, expiresAt: null, by });
  const made = await Promise.allSettled([make(), make()]);
  expect(made.map(({ status }) => status).sort()).toEqual(["fulfilled", "rejected"]);
  expect(members.keyCount(member.id)).toBe(3);
});

test("a folder without members asks nothing and needs no key, and from the first invitation on it needs one", async () => {
  const home = temporaryFolder();
  const { members } = openIn(home);
  await members.hear([`drg_${"x".repeat(43)}`]);
  await members.hearAll();
  expect([members.needKeys, members.list(), await members.openInvitations()]).toEqual([false, [], []]);
  expect(readdirSync(home)).toEqual([]);
  await members.invite("anna");
  expect([members.needKeys, openIn(home).members.needKeys]).toEqual([true, true]);
});
