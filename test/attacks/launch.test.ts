/**
 * Scenario: what stands on the command line, in the environment and in the folders that the program finds at its start.
 */
import { expect, test } from "bun:test";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { scriptedGithub } from "../cli/bench";
import { program, run } from "../support/command";
import { inProcess } from "../support/in-process";
import { postJson } from "../support/post-json";
import { startRaw } from "../support/raw-socket";
import { testWith } from "../support/sandbox";
import { sharedModel } from "../support/shared-model";
import { temporaryFolder } from "../support/temporary-folder";
import { until } from "../support/until";

const start = ["start", "--json", "--port", "0"];
const hello = { model: sharedModel, messages: [{ role: "user", content: "Hello" }] };
/** The one line on stdout of a start that fails. */
const failed = (code: string) =>
  expect.stringMatching(new RegExp(`^\\{"event":"failed","code":"${code}","message":.*\\}\n$`));

/** A data folder made by somebody else. */
function folderWith(files: Record<string, string>): { path: string; data: string } {
  const path = temporaryFolder();
  const data = join(path, "data");
  mkdirSync(data, { mode: 0o700 });
  for (const [name, text] of Object.entries(files)) writeFileSync(join(data, name), text, { mode: 0o600 });
  return { path, data };
}

const modesIn = (folder: string) =>
  readdirSync(folder, { recursive: true, withFileTypes: true }).map((entry) => {
    const path = join(entry.parentPath, entry.name);
    return [path.slice(folder.length + 1), (statSync(path).mode & 0o777).toString(8)];
  });

test("under a umask of 000, everything in the folder of data is its owner's alone while it is in use", async () => {
  await using github = scriptedGithub();
  await using command = run(start, {
    within: ["sh", "-c", 'umask 000; exec "$@"', "sh"],
    env: github.env,
  });
  const { url } = await command.ready();
  await using added = run(["auth", "add"], { within: ["sh", "-c", 'umask 000; exec "$@"', "sh"], env: github.env });
  expect(await added.exited).toBe(0);
  const isServed = async () => (await postJson(`${url}/v1/chat/completions`, hello)).status === 200;
  await until(isServed, "the new account serves");
  expect((await postJson(`${url}/api/admin/config`, { logLevel: "debug" })).status).toBe(200);
  const all = ["config.json", "admin.sqlite", "admin.sqlite-wal", "admin.sqlite-shm"];
  const hasAll = () => all.every((name) => modesIn(github.data).some(([each]) => each === name));
  await until(hasAll, "every file is there");
  const modes = modesIn(github.data);
  expect(modes.some(([name]) => /^accounts\/.*octo-demo/.test(name!))).toBe(true);
  expect(modes.filter(([, mode]) => mode !== "600" && mode !== "700")).toEqual([]);
  expect((statSync(github.data).mode & 0o777).toString(8)).toBe("700");
});

test("a folder of data that others could read is tightened at the start, with one warning", async () => {
  await using github = scriptedGithub();
  mkdirSync(github.data, { recursive: true });
  writeFileSync(join(github.data, "config.json"), "{}");
  chmodSync(github.data, 0o755);
  chmodSync(join(github.data, "config.json"), 0o644);
  using served = github.serve();
  expect((statSync(github.data).mode & 0o777).toString(8)).toBe("700");
  expect((statSync(join(github.data, "config.json")).mode & 0o777).toString(8)).toBe("600");
  expect(served.lines.join("").match(/ warn /g)).toHaveLength(1);
});

test("a folder of data that leads to a folder anybody may write into stops the start, with the reason", async () => {
  const folder = folderWith({});
  const open = join(folder.path, "open");
  mkdirSync(open);
  chmodSync(open, 0o777);
  symlinkSync(open, join(folder.path, "link"));
  const { code, stdout, stderr } = await inProcess(start, { DRAGOMAN_HOME: join(folder.path, "link") });
  expect([code, stdout]).toEqual([1, failed("data_folder_unusable")]);
  expect(stderr).toContain("Others may write into the folder");
});

testWith("users", "a folder of data with a config of somebody else's stops the start, with the reason", async () => {
  const folder = folderWith({ "config.json": "{}" });
  Bun.spawnSync(["chown", "65534", join(folder.data, "config.json")]);
  const { code, stdout, stderr } = await inProcess(start, { DRAGOMAN_HOME: folder.data });
  expect([code, stdout]).toEqual([1, failed("config_invalid")]);
  expect(stderr).toMatch(/config\.json.*(?:another user|owner)/);
});

test.each([
  ["a pipe", (file: string) => void Bun.spawnSync(["mkfifo", file])],
  ["a folder", (file: string) => mkdirSync(file)],
  ["100 MB", (file: string) => writeFileSync(file, new Uint8Array(100 * 1024 * 1024).fill(32))],
  ["no text", (file: string) => writeFileSync(file, new Uint8Array([0, 255, 254, 0, 1, 2, 3]))],
  ["a circle of links", (file: string) => symlinkSync(file, file)],
])("a config that is %s stops the start, in words", async (_name, make) => {
  const folder = folderWith({});
  make(join(folder.data, "config.json"));
  const { code, stdout, stderr } = await inProcess(start, { DRAGOMAN_HOME: folder.data });
  expect([code, stdout, stderr]).toEqual([1, failed("config_invalid"), expect.stringContaining("config.json")]);
  expect(stderr).not.toMatch(/\n\s+at /);
});

test("--host 0 is every address, and with --allow-open not without a warning", async () => {
  await using open = run([...start, "--host", "0", "--allow-open"]);
  const { port } = await open.ready();
  expect((await fetch(`http://127.0.0.1:${port}/health`)).status).toBe(200);
  expect(open.stderr()).toContain("WARNING: Anyone who can reach this machine can use your accounts.");
});

test("a good token is used, and is in no line, no file and no answer", async () => {
  await using github = scriptedGithub();
  const { githubToken } = github.demo.accounts[0]!;
  await using command = run([...start, "--idp-token", githubToken], { env: github.env });
  const { url } = await command.ready();
  expect((await postJson(`${url}/api/admin/config`, { logLevel: "debug" })).status).toBe(200);
  expect((await postJson(`${url}/v1/chat/completions`, hello)).status).toBe(200);
  const answers = await Promise.all(
    ["/", "/health", "/usage", "/usage/0", "/token", "/api/admin/accounts", "/api/admin/requests"].map(async (path) =>
      (await fetch(url + path)).text(),
    ),
  );
  const files = readdirSync(github.data, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => readFileSync(join(entry.parentPath, entry.name), "latin1"));
  for (const text of [command.stdout(), command.stderr(), ...answers, ...files])
    expect(text.includes(githubToken) || text.includes(btoa(githubToken))).toBe(false);
});

test("no word of a .env, and no other file, in the folder it stands in takes effect", async () => {
  await using trap = await startRaw(
    (socket) => void socket.end("HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\n\r\n"),
  );
  await using github = scriptedGithub();
  github.signIn("octo-demo");
  const names = ["", ".local", ".production", ".development", ".test"];
  const lines = [
    "ADMIN_TOKEN=from-the-folder",
    "DRAGOMAN_API_KEY=from-the-folder",
    "PROXY_API_KEY=from-the-folder",
    `DRAGOMAN_COPILOT_API_URL=${trap.url}`,
    `DRAGOMAN_ANTHROPIC_API_URL=${trap.url}`,
    "ANTHROPIC_API_KEY=from-the-folder",
    "DRAGOMAN_ENTERPRISE_URL=evil.example",
    "DRAGOMAN_OAUTH_APP=evil",
    "DRAGOMAN_UPSTREAM_TIMEOUT_MS=1",
    `HTTPS_PROXY=${trap.url}`,
    `HTTP_PROXY=${trap.url}`,
    `ALL_PROXY=${trap.url}`,
    "NODE_TLS_REJECT_UNAUTHORIZED=0",
    "NODE_EXTRA_CA_CERTS=/nowhere",
    "DRAGOMAN_HOME=/nowhere/at-all",
    "DRAGOMAN_GITHUB_TOKEN=ghu_fromthefolder0123456789",
  ];
  const folder = folderWith({});
  for (const name of names) writeFileSync(join(folder.path, `.env${name}`), lines.join("\n"));
  const marker = join(folder.path, "marker");
  for (const [name, text] of [
    ["preload.ts", `require("node:fs").writeFileSync(${JSON.stringify(marker)}, "ran");`],
    ["bunfig.toml", 'preload = ["./preload.ts"]\n'],
    ["tsconfig.json", '{ "compilerOptions": { "paths": { "*": ["./preload.ts"] } } }'],
  ] as const)
    writeFileSync(join(folder.path, name), text);
  // Not named: the data folder must be found where the home is, not where the file says.
  const { DRAGOMAN_HOME: _, ...env } = github.env;
  // The source by its own first line, as an installed package is run.
  const instead = process.env.DRAGOMAN_BINARY ? program : [join(import.meta.dir, "../../src/main.ts")];
  await using command = run(start, { cwd: folder.path, env: { ...env, DRAGOMAN_HOME: github.data }, instead });
  const { url } = await command.ready();
  expect((await postJson(`${url}/v1/chat/completions`, hello)).status).toBe(200);
  expect((await fetch(`${url}/v1/models`)).status).toBe(200);
  expect((await fetch(`${url}/api/admin/meta`, { headers: { "x-forwarded-for": "192.0.2.9" } })).status).toBe(403);
  const { accounts } = (await (await fetch(`${url}/usage`)).json()) as { accounts: { id: string }[] };
  expect(accounts.map(({ id }) => id)).toEqual(["octo-demo"]);
  expect([trap.connections, existsSync(marker)]).toEqual([0, false]);
  expect(command.stderr()).not.toContain("/nowhere");
  expect(await (await fetch(`${url}/api/admin/meta`)).json()).toMatchObject({
    dbPath: join(github.data, "admin.sqlite"),
  });
});
