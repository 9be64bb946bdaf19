/** Rows: `dragoman member`: limits, links that are taken back, and what is typed wrongly. */
import { beforeAll, expect, test } from "bun:test";
import { mkdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { inProcess } from "../support/in-process";
import { describeWithMembers, placeOf } from "../support/teams";
import { temporaryFolder } from "../support/temporary-folder";

describeWithMembers("dragoman member", (place) => {
  let env: Record<string, string>;
  beforeAll(async () => {
    env = await placeOf(place);
  });

  const member = (...words: string[]) => inProcess(["member", ...words], env);
  const listed = async () => JSON.parse((await member("ls", "--json")).stdout).items;

  test("limits a member at the invitation and later, and takes the link back", async () => {
    const added = await member("add", "anna", "--models", "claude-*, gpt-5*", "--expires", "90d");
    expect([added.code, added.stdout]).toEqual([0, expect.stringContaining("/admin/join/")]);
    expect(added.stderr).toContain("It begins with the address of this machine.");
    const elsewhere = await member("add", "anna", "--url", "https://dragoman.example/team?from=mail");
    expect([elsewhere.stdout, elsewhere.stderr]).toEqual([
      expect.stringMatching(/^https:\/\/dragoman\.example\/admin\/join\//),
      expect.not.stringContaining("this machine"),
    ]);
    expect(await listed()).toMatchObject([{ name: "anna", models: ["claude-*", "gpt-5*"], key_days: 90 }]);
    expect((await member("set", "Anna", "--expires", "never")).stderr).toContain("Days per key: never");
    expect((await member("set", "anna", "--models", "*")).stderr).toContain("anna has these limits now. Models: all;");
    const again = await member("add", "ANNA", "--expires", "7");
    expect(again.stderr).toContain("an earlier link that was not used no longer works");
    expect(await listed()).toMatchObject([{ name: "anna", models: null, key_days: 7 }]);
    expect((await member("ls")).stderr).toContain("anna has an invitation, until ");
    expect((await member("withdraw", "anna")).stderr).toContain("was taken back");
    expect((await member("withdraw", "anna")).stderr).toContain("no open invitation");
    expect((await member("ls")).stderr).toContain("anna has no account and no open invitation: a new link");
  });
});

test.skipIf(process.platform === "win32").each([["member"], ["key"]])(
  "`%s add` leaves the data folder to its user alone",
  async (command) => {
    const home = temporaryFolder();
    const env = { HOME: home, DRAGOMAN_HOME: join(home, "data") };
    mkdirSync(env.DRAGOMAN_HOME, { mode: 0o755 });
    const before = process.umask(0o022);
    try {
      expect((await inProcess([command, "add", "anna"], env)).code).toBe(0);
    } finally {
      process.umask(before);
    }
    expect(statSync(env.DRAGOMAN_HOME).mode & 0o777).toBe(0o700);
  },
);
