/**
 * Claude Code's `/login` against a team of two servers, behind Caddy with TLS where there is one: the real program at a terminal
 * signs in, a member confirms the code, it gets its settings, a prompt uses the member's account, and after the member was removed
 * it must sign in again. `bun test/clients/gateway-login.ts`. Needs npm and its registry, and a Postgres
 * (test/support/postgres.ts); not part of the tests.
 */
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startCaddy } from "../support/caddy";
import { browserOf } from "../support/device-login";
import { startPostgres } from "../support/postgres";
import { startTeamApp } from "../support/team-app";
import { install } from "./install";

/** Milliseconds for one step. */
const within = 60_000;

const installed = await install(["@anthropic-ai/claude-code"]);
const home = mkdtempSync(join(tmpdir(), "dragoman-gateway-"));
await using postgres = await startPostgres();
await using server = await startTeamApp(postgres, { idleSeconds: 60 });
await using other = await startTeamApp(postgres, { env: server.env, demo: server.demo, idleSeconds: 60 });
const anna = await server.addMember("anna", "anna-octo");
await server.app.config.change({ claudeCodeSettings: { companyAnnouncements: ["The otter greets you."] } });

/** What Claude Code asked for, the status that it got, and at which server. */
const asked: string[] = [];
const notedAt = ({ url }: { url: string }, number: number) =>
  Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    idleTimeout: 0,
    async fetch(request) {
      const { pathname, search } = new URL(request.url);
      const body = request.method === "GET" || request.method === "HEAD" ? undefined : await request.bytes();
      const { method, headers } = request;
      const answer = await fetch(url + pathname + search, {
        ...{ method, headers, body },
        ...({ redirect: "manual", decompress: false } as const),
      });
      if (!pathname.startsWith("/health")) asked.push(`${method} ${pathname} ${answer.status} at server ${number}`);
      return new Response(answer.body, answer);
    },
  });
using front = notedAt(server, 1);
using second = notedAt(other, 2);
const caddy = Bun.which("caddy") ? await startCaddy([front.port!, second.port!]) : undefined;
console.log(caddy ? "over TLS, behind Caddy" : "without TLS: there is no Caddy here");
if (caddy) await Bun.write(join(home, "ca.pem"), caddy.tls.ca);

const work = join(home, "work");
const managed = join(home, ".claude");
for (const folder of [work, managed]) mkdirSync(folder);
const settings = { forceLoginMethod: "gateway", forceLoginGatewayUrl: caddy?.url ?? front.url.origin };
await Bun.write(join(managed, "settings.json"), JSON.stringify(settings));
await Bun.write(
  join(home, ".claude.json"),
  JSON.stringify({
    hasCompletedOnboarding: true,
    theme: "dark",
    projects: { [work]: { hasTrustDialogAccepted: true } },
  }),
);
const env = {
  PATH: process.env.PATH,
  HOME: home,
  TERM: "xterm-256color",
  DISABLE_AUTOUPDATER: "1",
  BROWSER: "true",
  ...(caddy && { NODE_EXTRA_CA_CERTS: join(home, "ca.pem") }),
};

let written = "";
const decoder = new TextDecoder();
function start(args: string[]) {
  written = "";
  return Bun.spawn([installed.program("claude"), ...args], {
    cwd: work,
    env,
    terminal: {
      cols: 140,
      rows: 50,
      data(_terminal, bytes) {
        written += decoder.decode(bytes, { stream: true });
      },
    },
  });
}
const screen = () => Bun.stripANSI(written);
/** Cursor movements stand where spaces were, so words are compared without spaces. */
async function shows(words: RegExp, what: string): Promise<RegExpExecArray> {
  const deadline = performance.now() + within;
  for (;;) {
    const found = words.exec(screen().replace(/\s+/g, ""));
    if (found) return found;
    if (performance.now() > deadline) throw new Error(`It never showed ${what}:\n${screen().slice(-3000)}`);
    await Bun.sleep(200);
  }
}
const step = (sentence: string) => console.log(`ok: ${sentence}`);

const shell = start(["/login"]);
try {
  await shows(/Entertoconnect/, "the address");
  shell.terminal!.write("\r");
  await shows(/Yes,trustthisgateway/, "the question of trust");
  shell.terminal!.write("\u001b[A");
  await Bun.sleep(500);
  shell.terminal!.write("\r");
  const [code] = await shows(/[B-Z]{4}-[B-Z]{4}/, "the code");
  const confirmed = await (await browserOf(server, anna.key)).decide(code);
  if (confirmed.location !== "/admin/device?done=confirmed") throw new Error(`The page answered ${confirmed.status}.`);
  await shows(/SignedintoCloudgatewayasanna/, "whose account it is");
  shell.terminal!.write("\u001b[A");
  await Bun.sleep(500);
  shell.terminal!.write("\r");
  step("/login shows a code, anna confirms it, and Claude Code asks whether anna is right");
  await shows(/ConnectedtoCloudgateway/, "that it is connected");
  shell.terminal!.write("\r");
  await shows(/Managedsettingsrequireapproval/, "that its settings have arrived");
  shell.terminal!.write("\u001b[B");
  await Bun.sleep(500);
  shell.terminal!.write("\r");
  step("the settings arrive, and Claude Code has the person approve the variables among them");
  await Bun.sleep(3_000);
  shell.kill("SIGKILL");
  await shell.exited;

  const prompt = async () => {
    const child = Bun.spawn([installed.program("claude"), "-p", "say hello"], {
      cwd: work,
      env,
      stdin: "ignore",
      stdout: "pipe",
      stderr: "pipe",
      timeout: within,
    });
    const [out, err, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
    return { code, said: `${out}\n${err}` };
  };
  const answered = await prompt();
  await server.app.history.flush();
  const { items } = await server.app.history.list({ key_name: "anna/claude-code" }, 10);
  const accounts = [...new Set(items.map(({ account_id }) => account_id))];
  if (answered.code !== 0 || accounts.join() !== "anna-octo")
    throw new Error(`The prompt was not answered by anna's account (${accounts}): ${answered.said}`);
  // Its own default would be the dearest class.
  const model = items[0]!.upstream_model;
  if (!model?.startsWith("claude-sonnet-")) throw new Error(`The prompt went to ${model}.`);
  step(`a prompt uses anna's account and ${model}, as ${items[0]!.client_name}`);
  if (!asked.some((each) => each.startsWith("GET /managed/settings 200")))
    throw new Error(`It asked for no settings again: ${asked.join(", ")}`);

  console.log([...new Set(asked)].sort().join("\n"));

  await server.stores.members.remove("anna");
  const startedAt = performance.now();
  const after = await prompt();
  const seconds = (performance.now() - startedAt) / 1_000;
  if (after.code === 0 || seconds > 60) throw new Error(`After the removal it ended with ${after.code}: ${after.said}`);
  step(`after the removal it says within ${seconds.toFixed(0)} s: ${after.said.trim().split("\n")[0]}`);
} finally {
  if (shell.exitCode === null) shell.kill("SIGKILL");
  await shell.exited;
  await caddy?.[Symbol.asyncDispose]();
  rmSync(home, { recursive: true, force: true });
}
