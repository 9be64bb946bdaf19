/** Scenario: `dragoman doctor`: what is wrong is found and named, what is right is left exactly as it is. */
import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { chmodSync, cpSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { version } from "../../package.json";
import { checkIntegrity } from "../../src/books/history/integrity-check";
import type { CheckContext, Finding } from "../../src/cli/checks/check";
import { checkProxy, checkTrust } from "../../src/cli/checks/network";
import { checkVariables } from "../../src/cli/checks/variables";
import { readEnvironment } from "../../src/config/environment";
import { run } from "../support/command";
import { companyRoot, declining, startCompany } from "../support/corporate-proxy";
import { freePort } from "../support/free-port";
import { inProcess } from "../support/in-process";
import { temporaryFolder } from "../support/temporary-folder";
import { until } from "../support/until";
import { ask, type Github, scriptedGithub } from "./bench";

interface Report {
  code: number;
  version: string;
  platform: string;
  checks: Finding[];
  stdout: string;
  /** Of one name, in order. */
  of(name: string): Finding[];
}

async function examine(env: Record<string, string>, port = freePort()): Promise<Report> {
  const { code, stdout, stderr } = await inProcess(["doctor", "--json", "--port", String(port)], env);
  expect(stderr).toBe("");
  expect(stdout.trim().split("\n")).toHaveLength(1);
  const report = JSON.parse(stdout) as Pick<Report, "version" | "platform" | "checks">;
  expect(code).toBe(report.checks.some(({ state }) => state === "fail") ? 1 : 0);
  const of = (name: string) => report.checks.filter((finding) => finding.name === name);
  return { ...report, code, stdout, of };
}

/** Every entry below, with its rights, times and bytes. */
const traces = (folder: string) =>
  readdirSync(folder, { recursive: true, encoding: "utf8" })
    .filter((name) => !name.startsWith(".bun"))
    .sort()
    .map((name) => {
      const { mode, mtimeMs, size } = statSync(join(folder, name));
      return { name, mode, mtimeMs, size };
    });

/** All that GitHub and Copilot list for the account is enabled. */
function withoutPolicy({ demo }: Github) {
  for (const account of demo.accounts) account.models = ["gpt-5-mini", "claude-sonnet-4.6"];
}

test("doctor changes nothing and asks nothing paid, also of files that others can read", async () => {
  await using github = scriptedGithub();
  github.signIn("octo-demo", "plus-demo");
  const served = github.serve();
  await (await fetch(`${served.url}/health`)).text();
  served[Symbol.dispose]();
  writeFileSync(join(github.data, "config.json"), '{"logLevel":"debug"}');
  for (const name of ["config.json", "accounts/github.com/octo-demo.json", "admin.sqlite"])
    chmodSync(join(github.data, name), 0o644);
  chmodSync(github.data, 0o755);
  const before = traces(github.home);
  github.demo.journal.length = 0;

  const report = await examine(github.env);
  expect(traces(github.home)).toEqual(before);
  expect(report.of("data folder")[0]).toMatchObject({
    state: "warn",
    message: "Other users can read 4 items in ~/.local/share/dragoman: the folder itself and more.",
    todo: 'Run: chmod -R go= "$HOME/.local/share/dragoman"',
  });
  expect(report.of("history")[0]).toMatchObject({ state: "ok" });
  expect(new Set(github.demo.journal.map(({ method, path }) => `${method} ${path}`))).toEqual(
    new Set([
      "GET /",
      "GET /_ping",
      "GET /user",
      "GET /models",
      "GET /copilot_internal/user",
      "GET /copilot_internal/v2/token",
    ]),
  );
});

test("what doctor says may be pasted anywhere: no token, no key, no password, no name of the machine's user", async () => {
  await using github = scriptedGithub();
  github.signIn("octo-demo", "work-demo", "plus-demo");
  writeFileSync(
    join(github.data, "config.json"),
    JSON.stringify({ auth: { apiKeys: ["client-key-of-the-owner"] }, anthropicApiKey: "another-secret-key" }),
    { mode: 0o600 },
  );
  const secrets = {
    ADMIN_TOKEN: "admin-token-canary",
    ANTHROPIC_API_KEY: "anthropic-key-canary",
    ANTHROPIC_AUTH_TOKEN: "auth-token-canary",
    HTTP_PROXY: "http://someone:password-canary@127.0.0.1:1",
    ANTHROPIC_BASE_URL: "https://someone:password-canary@elsewhere.example/x",
  };
  // Whoever answers may say back what it was sent, or knows.
  const echo = () => Response.json({ error: { message: "Not with admin-token-canary!" } }, { status: 400 });
  github.demo.intercept("/models", echo, 3);
  const { stdout } = await examine({ ...github.env, ...secrets });
  expect(stdout).toContain("Not with [secret]!");
  expect(stdout).not.toMatch(/canary|someone|client-key|another-secret|gh[uo]_|tid=/);
  expect(stdout).not.toContain(github.home);
  for (const { githubToken } of github.demo.accounts) expect(stdout).not.toContain(githubToken);
});

test("the history of a running server is read beside it, and that which a killed one left, write-ahead log and all, as it is", async () => {
  await using github = scriptedGithub();
  github.signIn("octo-demo");
  const path = join(github.data, "admin.sqlite");
  expect(checkIntegrity(path)).toBe(undefined);
  using served = github.serve();
  for (const rows of [1, 2]) {
    await (await ask(served.url)).text();
    await until(() => checkIntegrity(path)?.rows === rows, "the row is written");
  }
  // As it stands while the server has it open.
  const left = join(github.home, "left");
  cpSync(github.data, left, { recursive: true });
  const before = traces(left).filter(({ name }) => !name.endsWith("-shm"));
  expect(before.map(({ name }) => name)).toContain("admin.sqlite-wal");
  expect(checkIntegrity(join(left, "admin.sqlite"))).toMatchObject({ rows: 2 });
  expect(traces(left).filter(({ name }) => !name.endsWith("-shm"))).toEqual(before);
});

test.each(["127.0.0.1", "::"])("the port is somebody else's, who listens on %s, and whose", async (hostname) => {
  await using github = scriptedGithub();
  using holder = Bun.serve({ port: 0, hostname, fetch: () => new Response("hello") });
  const { message, state } = (await examine(github.env, holder.port)).of("port")[0]!;
  expect(state).toBe("fail");
  const isTold = process.platform === "linux";
  const who = isTold ? `${readFileSync("/proc/self/comm", "utf8").trim()} (process ${process.pid})` : "another program";
  expect(message).toBe(`Port ${holder.port} is in use by ${who}.`);
});

test("the port is our own running server's, which is well", async () => {
  await using github = scriptedGithub();
  await using served = run(["start", "--json", "--port", "0"], { env: github.env });
  const { url, port, pid } = await served.ready();
  const report = await examine(github.env, port);
  expect(report.of("server")).toEqual([
    { name: "server", state: "ok", message: `dragoman ${version} is running at ${url} (process ${pid}).` },
  ]);
  expect(report.of("port")).toEqual([]);
  // Under another name or address it is the same server, told once.
  const note = join(github.data, "running.json");
  writeFileSync(note, readFileSync(note, "utf8").replace("127.0.0.1", "localhost"));
  if (process.platform === "linux") expect((await examine(github.env, port)).of("server")).toHaveLength(1);
  // Of another data folder, it is still known as one of ours.
  const other = await examine({ ...github.env, DRAGOMAN_HOME: join(github.home, "other") }, port);
  expect(other.of("server")[0]).toMatchObject({
    state: "ok",
    message: expect.stringContaining(`is running at ${url}`),
  });
});

const upstreams = {
  DRAGOMAN_GITHUB_URL: "https://github.test",
  DRAGOMAN_GITHUB_API_URL: "https://api.github.test",
  DRAGOMAN_COPILOT_API_URL: "https://copilot.test",
};

test("the way to GitHub through a proxy that signs with its own root is well once that is trusted", async () => {
  await using github = scriptedGithub();
  withoutPolicy(github);
  github.signIn("octo-demo");
  await using company = await startCompany({
    serve: (request) => fetch(github.demo.url + new URL(request.url).pathname, { headers: request.headers }),
  });
  const env = { ...github.env, ...upstreams, HTTPS_PROXY: company.url, NO_PROXY: ".corp" };
  const well = await examine({ ...env, NODE_EXTRA_CA_CERTS: companyRoot });
  expect(well.checks.filter(({ state }) => state !== "ok")).toEqual([]);
  expect(well.of("proxy")[0]!.message).toBe(`${company.url} (HTTPS_PROXY), not for: this machine, .corp.`);
  expect(well.of("CA file")[0]!.message).toMatch(/^NODE_EXTRA_CA_CERTS adds 1 certificate from .+company-root\.pem\.$/);

  const untrusted = await examine(env);
  expect(untrusted.of("Copilot API")[0]).toMatchObject({
    state: "fail",
    message: expect.stringMatching(
      /^copilot\.test has a TLS certificate, seen through the proxy .+ signed by nobody this machine knows\. .+NODE_EXTRA_CA_CERTS.+ It is signed by "Example company root \(test\)"\.$/,
    ),
  });
  expect(untrusted.of("account octo-demo")[0]).toMatchObject({
    state: "fail",
    message: expect.stringContaining("NODE_EXTRA_CA_CERTS"),
  });
});

test("each hop on the way to GitHub that can fail is named", async () => {
  await using github = scriptedGithub();
  await using company = await startCompany();
  const env = { ...github.env, ...upstreams, HTTPS_PROXY: company.url };
  const said = async (more: Record<string, string> = {}) =>
    (await examine({ ...env, ...more })).of("GitHub")[0]!.message;
  company.answer = declining("407 Proxy Authentication Required");
  expect(await said()).toContain(
    `the proxy ${company.url} (HTTPS_PROXY) wants a user name and a password (status 407). Put them into HTTPS_PROXY, as user:password@127.0.0.1:`,
  );
  company.answer = declining("502 Bad Gateway");
  expect(await said()).toContain("could not reach github.test itself (status 502)");
  expect(await said({ HTTPS_PROXY: "http://proxy.invalid:8080" })).toContain(
    "name of the proxy http://proxy.invalid:8080",
  );
});

test("a proxy and a CA file that cannot be used are named, with what to do", () => {
  const context = (env: Record<string, string>) =>
    ({ environment: readEnvironment({ HOME: "/" }), env }) as CheckContext;
  const [ignored] = checkProxy(context({ ALL_PROXY: "socks5://127.0.0.1:1" }));
  expect(ignored).toMatchObject({
    state: "warn",
    message: expect.stringContaining("GitHub is called directly: ALL_PROXY names a socks5:// proxy"),
  });
  const unusable = context({ HTTPS_PROXY: "socks5://127.0.0.1:1", SSL_CERT_FILE: "/nowhere.pem" });
  expect(checkProxy(unusable)[0]).toMatchObject({ state: "fail", todo: "Fix or unset HTTPS_PROXY." });
  expect(checkTrust(unusable)[0]).toMatchObject({
    state: "fail",
    message: "SSL_CERT_FILE names /nowhere.pem, which does not exist; its certificates are not trusted.",
  });
  const spared = context({ HTTPS_PROXY: "http://proxy.corp:8080", NO_PROXY: "api.github.com" });
  expect(checkProxy(spared)[0]!.message).toBe("None: GitHub is called directly.");
});

test("the clock is judged by what the hosts say", async () => {
  await using github = scriptedGithub();
  github.demo.intercept(/^\/(_ping)?$/, () => new Response("", { headers: { date: new Date(0).toUTCString() } }), 3);
  expect((await examine(github.env)).of("clock")[0]!.state).toBe("fail");
});

test("a history that a newer version wrote is named as such, and left alone", () => {
  const path = join(temporaryFolder(), "admin.sqlite");
  const database = new Database(path);
  database.run("PRAGMA user_version = 99");
  database.close();
  expect(() => checkIntegrity(path)).toThrow("was written by a newer dragoman; use that version.");
  expect(readdirSync(join(path, ".."))).toEqual(["admin.sqlite"]);
});

test("variables that turn the checks of certificates off, or lead calls of this machine through a proxy, are named", () => {
  const env = { HOME: "/nowhere", NODE_TLS_REJECT_UNAUTHORIZED: "0", HTTP_PROXY: "http://proxy.test:8080" };
  const context = { env, environment: readEnvironment(env), port: 4141 } as unknown as CheckContext;
  const said = checkVariables(context).map(({ message }) => message);
  expect(said).toEqual([
    expect.stringContaining("HTTP_PROXY is set, and NO_PROXY does not include 127.0.0.1"),
    expect.stringContaining("NODE_TLS_REJECT_UNAUTHORIZED=0 turns certificate checks off"),
  ]);
});
