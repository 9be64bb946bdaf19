/** Scenario: `dragoman auth` as a person meets it, at a terminal and without one. */
import { describe, expect, test } from "bun:test";
import { chmodSync, existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { inProcess } from "../support/in-process";
import { atTerminal } from "../support/terminal";
import { until } from "../support/until";
import { type Github, scriptedGithub } from "./bench";

const withoutCopilot = () =>
  Response.json({ error_details: { message: "No access to GitHub Copilot found." } }, { status: 403 });

describe.concurrent("signing in at a terminal", () => {
  test.each([
    ["github.com", [], "github.com"],
    ["a tenant of ghe.com", ["--enterprise-url=Company.ghe.com"], "company.ghe.com"],
  ])("at %s: the code and the time left are shown, and the account is saved and known", async (_, options, host) => {
    await using github = scriptedGithub();
    await using terminal = atTerminal(["auth", ...options], github.env, github.home);
    await terminal.shows("enter the code DEMO-0001");
    expect(terminal.screen()).toContain(
      `Signing in at ${host}. GitHub's page will show “GitHub Copilot Plugin”, not dragoman`,
    );
    expect(terminal.screen()).toContain(`Open ${github.demo.url}/login/device`); // no screen here: nothing is opened
    await terminal.shows(/Waiting: 14:5\d left; press Ctrl-C/);
    await terminal.shows("Signed in as octo-demo.");
    expect(await terminal.exited).toBe(0);
    expect(terminal.screen()).toContain("Plan: individual. Remaining premium requests: 217.34 of 300");
    expect(terminal.screen()).not.toContain(github.demo.accounts[0]!.githubToken);

    const file = join(github.data, "accounts", host, "octo-demo.json");
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(JSON.parse(readFileSync(file, "utf8"))).toMatchObject({ login: "octo-demo", host, app: "vscode" });
  });

  test("the environment names the tenant and the app as well, in both spellings", async () => {
    await using github = scriptedGithub();
    const app = "Ov23liMadeAtTheTenant";
    const env = { ...github.env, PROXY_API_ENTERPRISE_URL: "company.ghe.com", PROXY_API_OAUTH_APP: app };
    await using terminal = atTerminal(["auth"], env, github.home);
    await terminal.shows(`Signing in at company.ghe.com. GitHub's page will name the app ${app}`);
    await terminal.shows("Signed in as plus-demo.");
    expect(await terminal.exited).toBe(0);
    expect(
      JSON.parse(readFileSync(join(github.data, "accounts/company.ghe.com/plus-demo.json"), "utf8")),
    ).toMatchObject({ app });
  });

  test("Ctrl-C ends it at once and cleanly", async () => {
    await using github = scriptedGithub();
    await using terminal = atTerminal(["auth"], github.env, github.home);
    await terminal.shows("press Ctrl-C to cancel");
    terminal.type("\x03");
    expect(await terminal.exited).toBe(130);
    expect(terminal.screen()).toEndWith("Nothing was saved.\n");
    expect(github.logins()).toEqual([]);
  });

  // biome-ignore format: a table is read by its rows
  const ends: [what: string, prepare: (github: Github) => void, shows: (string | RegExp)[], logins: string[], more?: { args?: string[]; code?: number }][] = [
    ["before the second account comes one sentence on whose accounts may be used", ({ signIn }) => signIn("plus-demo"), ["Use only your own accounts", "Signed in as octo-demo."], ["plus-demo", "octo-demo"], { args: ["auth", "add"] }],
    ["the same person again is one account", ({ signIn }) => signIn("octo-demo", "plus-demo"), ["Already signed in: octo-demo, plus-demo.", "Signed in as octo-demo, whose sign-in is renewed."], ["octo-demo", "plus-demo"]],
    ["an account without Copilot is saved, and told why it cannot be used", ({ demo }) => demo.intercept("/copilot_internal/v2/token", withoutCopilot, Number.POSITIVE_INFINITY), ["The account is saved, but cannot be used yet.", /No\s+access to GitHub Copilot found\./], ["octo-demo"]],
    ["the login is asked for again when the network is gone for a moment after the approval", ({ demo }) => demo.intercept("/user", () => new Response("", { status: 502 })), ["Signed in as octo-demo."], ["octo-demo"]],
    ["an account that cannot be saved is not there, and what stays at GitHub is said", ({ data }) => mkdirSync(join(data, "accounts/github.com/octo-demo.json/in-the-way"), { recursive: true, mode: 0o700 }), ["The account could not be saved", /the app stays approved until\s+you revoke it at https:\/\/github\.com\/settings\/apps\/authorizations\./], [], { code: 1 }],
  ];
  test.each(ends)("%s", async (_, prepare, shows, logins, { args = ["auth"], code = 0 } = {}) => {
    await using github = scriptedGithub();
    prepare(github);
    await using terminal = atTerminal(args, github.env, github.home);
    expect(await terminal.exited).toBe(code);
    for (const part of shows) expect(terminal.screen()).toMatch(part);
    expect([github.logins(), terminal.screen().includes("Signed in as")]).toEqual([logins, code === 0]);
  });

  test("nobody at a terminal gets one plain line with the code, no browser, no countdown", async () => {
    await using github = scriptedGithub();
    const { code, stdout, stderr } = await inProcess(["auth"], { ...github.env, DISPLAY: ":0" });
    expect([code, stdout]).toEqual([0, ""]);
    expect(stderr).toContain(`Open ${github.demo.url}/login/device and enter the code DEMO-0001 within 15 minutes.\n`);
    expect(stderr).not.toMatch(/\x1b|\r/);
    expect(github.logins()).toEqual(["octo-demo"]);
  });
});

describe.concurrent("the clipboard and the browser", () => {
  /** Helpers that write down what they were given. */
  function desk(home: string) {
    const bin = join(home, "bin");
    mkdirSync(bin);
    const helper = (name: string, script: string) => {
      writeFileSync(join(bin, name), `#!/bin/sh\n${script}\n`);
      chmodSync(join(bin, name), 0o755);
    };
    helper("wl-copy", `cat > ${home}/copied`);
    helper("xdg-open", `printf %s "$1" > ${home}/opened`);
    return { PATH: `${bin}:${process.env.PATH}`, WAYLAND_DISPLAY: "wayland-0" };
  }

  test("the code is copied and the page opened where that is possible", async () => {
    await using github = scriptedGithub();
    await using terminal = atTerminal(["auth"], { ...github.env, ...desk(github.home) }, github.home);
    await terminal.shows("Your browser opens");
    expect(terminal.screen()).toContain("(copied to your clipboard)");
    // The file is there a moment before what stands in it.
    await until(
      () => existsSync(join(github.home, "opened")) && statSync(join(github.home, "opened")).size > 0,
      "the browser was opened",
    );
    expect(readFileSync(join(github.home, "copied"), "utf8")).toBe("DEMO-0001");
    expect(readFileSync(join(github.home, "opened"), "utf8")).toBe(`${github.demo.url}/login/device`);
    terminal.type("\x03");
    await terminal.exited;
  });

  test.each<Record<string, string>>([{ SSH_CONNECTION: "10.0.0.1 1 10.0.0.2 22" }, { CI: "true" }])(
    "no browser with %j",
    async (where) => {
      await using github = scriptedGithub();
      await using terminal = atTerminal(["auth"], { ...github.env, ...desk(github.home), ...where }, github.home);
      await terminal.shows("enter the code DEMO-0001");
      expect(terminal.screen()).toContain(`Open ${github.demo.url}`);
      terminal.type("\x03");
      await terminal.exited;
      expect(existsSync(join(github.home, "opened"))).toBe(false);
    },
  );

  test("an address that is not GitHub's own is shown with a warning and never opened", async () => {
    await using github = scriptedGithub();
    github.demo.intercept("/login/device/code", () =>
      Response.json({ device_code: "d", user_code: "ABCD-1234", verification_uri: "https://evil.example/login" }),
    );
    await using terminal = atTerminal(["auth"], { ...github.env, ...desk(github.home) }, github.home);
    await terminal.shows("Do not open it unless you know");
    await terminal.shows("Open https://evil.example/login");
    terminal.type("\x03");
    await terminal.exited;
    expect(existsSync(join(github.home, "opened"))).toBe(false);
  });
});

test("auth ls -q shows when a quota begins anew in the person's zone", async () => {
  await using github = scriptedGithub();
  github.signIn("octo-demo");
  const { stdout } = await inProcess(["auth", "ls", "-q"], { ...github.env, TZ: "Asia/Tokyo" });
  // The first of a month begins there nine hours earlier, and of a time of the same day no day is said.
  const day = new Date(Date.now() + 9 * 3_600_000).getUTCDate() === 1 ? " " : String.raw`1 [A-Z]\w+, `;
  expect(stdout).toMatch(new RegExp(`octo-demo .* ${day}09:00 .*ready\n$`));
});

test("auth rm at a terminal asks, and only yes is yes", async () => {
  await using github = scriptedGithub();
  github.signIn("octo-demo");
  for (const [keys, code, left] of [
    ["\n", 1, 1],
    ["\x03", 130, 1],
    ["yes\n", 0, 0],
  ] as const) {
    await using terminal = atTerminal(["auth", "rm", "1"], github.env, github.home);
    await terminal.shows("Remove octo-demo at github.com from this machine? [y/N]");
    terminal.type(keys);
    expect(await terminal.exited).toBe(code);
    expect([github.logins().length, terminal.screen().includes("Nothing was removed.")]).toEqual([left, left === 1]);
  }
});
