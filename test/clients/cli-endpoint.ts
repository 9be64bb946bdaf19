/**
 * The newest Copilot CLI of npm as an account: it is asked for the address and token of its models, and requests go there. It has no
 * account: the demo is its GitHub, and nothing leaves this machine but what npm downloads. `bun test/clients/cli-endpoint.ts`. Needs
 * npm and its registry; not part of the tests, and run each week by `.github/workflows/clients.yml`.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startProxy } from "../support/proxy";
import { install } from "./install";

const npm = "@github/copilot";
const installed = await install([npm]);
const home = mkdtempSync(join(tmpdir(), "dragoman-cli-"));
const command = installed.program("copilot");
const common = { login: "plus-demo", host: "github.com", app: "copilot-cli", mode: "direct", addedAt: 1 } as const;
await using proxy = await startProxy({ saved: () => [{ ...common, command }] });
const { githubToken } = proxy.demo.accounts.find(({ login }) => login === common.login)!;
Object.assign(process.env, {
  ...{ COPILOT_HOME: home, COPILOT_GITHUB_TOKEN: githubToken },
  // Its own variables for tests; what else it would reach meets a closed port.
  ...{ COPILOT_DEBUG_GITHUB_API_URL: proxy.demo.url, COPILOT_API_URL: proxy.demo.url },
  ...{ HTTPS_PROXY: "http://127.0.0.1:9", NO_PROXY: "127.0.0.1" },
});

let failed = 0;
const messages = [{ role: "user", content: "Hi" }];
for (const [path, body] of [
  ["/v1/messages", { model: "claude-sonnet-4.6", max_tokens: 9, messages }],
  ["/v1/responses", { model: "gpt-5.3-codex", input: "Hi" }],
] as const) {
  const answer = await proxy.post(path, body);
  const told = await answer.text();
  const { headers } = proxy.demo.journal.at(-1)!;
  const isOk = answer.ok && headers["copilot-integration-id"] === "copilot-developer-cli";
  if (!isOk) failed++;
  console.log(`Copilot CLI ${await installed.version(npm)}, ${path}: ${isOk ? "ok" : `FAILED: ${told.slice(0, 500)}`}`);
}
rmSync(home, { recursive: true, force: true });
process.exitCode = failed === 0 ? 0 : 1;
