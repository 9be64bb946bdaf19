/**
 * `bun test/bench/two-servers.ts [streams]`: so many streams at once, 1,000 by default, over two servers of one machine, as
 * `src/deploy/team` runs them: on a Postgres of their own, started by the unit's command, behind Caddy with the team's Caddyfile.
 * Needs Caddy (Debian: caddy) and what the tests need for Postgres.
 */
import { randomBytes } from "node:crypto";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { freePort } from "../support/free-port";
import { repository } from "../support/image";
import { withTeamStores } from "../support/members";
import { startPostgres } from "../support/postgres";
import { until } from "../support/until";
import { clientPath, modelOf, requestBody } from "./dialects";
import type { StreamsResult } from "./load";
import { load, newFolder, startUpstream, subjects } from "./processes";
import { growthOf, machine, workIn } from "./statistics";

const streams = Number(process.argv[2] ?? 1_000);
/** Of each stream: two a second. */
const [events, every] = [40, 500];

const home = newFolder();
await using stack = new AsyncDisposableStack();
stack.defer(() => rmSync(home, { recursive: true, force: true }));
const postgres = stack.use(await startPostgres());
const upstream = stack.adopt(await startUpstream(), (running) => running.stop());

const key = `drg_${"0".repeat(40)}`;
const env = {
  DRAGOMAN_DATABASE_URL: await postgres.database(),
  DRAGOMAN_SEAL_KEY: randomBytes(32).toString("base64"),
  DRAGOMAN_API_KEY: key,
  ADMIN_TOKEN: `${key}-admin`,
  DRAGOMAN_GITHUB_URL: upstream.url,
  DRAGOMAN_GITHUB_API_URL: upstream.url,
  DRAGOMAN_COPILOT_API_URL: upstream.url,
};
await withTeamStores({ env }, ({ accounts }) => {
  const githubToken = "ghu_0123456789abcdefghij";
  const signedIn = { login: "bench", host: "github.com", app: "vscode", githubToken, addedAt: Date.now() } as const;
  return Promise.resolve(accounts.add({ ...signedIn, mode: "exchange" }));
});

function start(name: string, command: string[], variables: Record<string, string>): number {
  const folder = join(home, name);
  const child = Bun.spawn(command, {
    env: { PATH: process.env.PATH ?? "", HOME: folder, NO_PROXY: "*", ...variables },
    stdout: "ignore",
    stderr: Bun.file(join(home, `${name}.log`)),
  });
  stack.defer(async () => {
    child.kill("SIGKILL");
    await child.exited;
  });
  return child.pid;
}

const fileOf = (name: string) => readFileSync(join(repository, "src/deploy/team", name), "utf8");
const [, args = ""] = /^ExecStart=\S+ (.*)$/m.exec(fileOf("dragoman@.service"))!;
const ports = [freePort(), freePort()];
const servers = ports.map((port) =>
  start(`server-${port}`, [...subjects.source, ...args.replace("%i", String(port)).split(" ")], {
    ...env,
    DRAGOMAN_HOME: join(home, `server-${port}`),
  }),
);
const url = `http://127.0.0.1:${freePort()}`;
const caddyfile = join(home, "Caddyfile");
writeFileSync(caddyfile, `{\n\tadmin off\n\tauto_https off\n}\n${fileOf("Caddyfile")}`);
const SERVERS = ports.map((port) => `127.0.0.1:${port}`).join(" ");
start("caddy", ["caddy", "run", "--config", caddyfile, "--adapter", "caddyfile"], { TEAM_HOST: url, SERVERS });
await until(
  () =>
    fetch(`${url}/health/ready`).then(
      ({ ok }) => ok,
      () => false,
    ),
  "a server answers behind Caddy",
);

await fetch(`${upstream.url}/script`, { method: "POST", body: JSON.stringify({ events, perRead: 1, every }) });
const job = { url: url + clientPath.chat, headers: { "x-api-key": key } } as const;
const small = requestBody("chat", modelOf("chat"), false);
await load({ ...job, kind: "requests", body: small, connections: 8, count: 600 });

const body = requestBody("chat", modelOf("chat"), true);
const all = load<StreamsResult>({ ...job, kind: "streams", body, streams, times: 1 });
const taken = servers.map(async (pid) => {
  const growth = growthOf(pid, () => all);
  const seconds = await workIn(pid, () => all);
  return `${seconds.toFixed(1)} s of CPU, ${(await growth).growth.toFixed(0)} MiB more`;
});
console.log((await Promise.all(taken)).map((of, at) => `server ${at + 1}: ${of}`).join("\n"));
const { finished, seconds } = await all;
console.log(`${finished} of ${streams} streams came to their end, in ${seconds.toFixed(0)} s; ${machine()}`);
