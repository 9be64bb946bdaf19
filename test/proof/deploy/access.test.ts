/** Rows: who may ask what of the program as a process of its own, source or executable: the table of test/access. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { exampleModels } from "../../../src/proxy/upstream/models/known-models";
import { expectRefused, expectServed, portOf } from "../../access/asking";
import { groups, servers } from "../../access/callers";
import { type Command, run } from "../../support/command";
import { temporaryFolder } from "../../support/temporary-folder";

const folder = temporaryFolder(afterAll);

/** A server of the table as a person would start it. */
function startAsked(name: string, server: (typeof servers)[keyof typeof servers]): Command {
  const home = join(folder, name);
  const inDemo = join(home, "demo");
  mkdirSync(inDemo, { recursive: true, mode: 0o700 });
  writeFileSync(join(inDemo, "config.json"), JSON.stringify(server.config), { mode: 0o600 });
  const options = "adminAuth" in server ? [`--admin-auth=${server.adminAuth}`] : [];
  return run(["start", "--demo", "--json", "--port", "0", ...options], {
    env: { DRAGOMAN_HOME: home, ...("env" in server && server.env) },
  });
}

// One needs a name that the machine has, and one is not served at all where it is started.
const started = Object.entries(servers).filter(([, server]) => !("binding" in server) && !("exposed" in server));
const running = new Map<string, { command: Command; url: string; model: string }>();
beforeAll(async () => {
  for (const [name, server] of started) {
    const command = startAsked(name, server);
    const { url } = await command.ready();
    running.set(name, { command, url, model: exampleModels.flash });
  }
}, 60_000);
afterAll(async () => {
  for (const { command } of running.values()) await command[Symbol.asyncDispose]();
});

const asked = groups
  .filter(({ at }) => started.some(([name]) => name === at))
  .flatMap((group) => group.sends.map((headers) => [group.who, JSON.stringify(headers), group, headers] as const));

test.each(asked)("%s: %s", async (_who, _headers, group, sent) => {
  const server = running.get(group.at)!;
  const headers = Object.fromEntries(
    Object.entries(sent).map(([name, value]) => [name, value.replace("PORT", portOf(server))]),
  );
  await expectRefused(server, group, headers);
  if (!group.isCounted) await expectServed(server, group, headers);
});

test("without a key no server begins that other machines reach", async () => {
  await using command = run(["start", "--demo", "--json", "--port", "0", "--host", "0.0.0.0"]);
  expect(await command.exited).not.toBe(0);
  expect(JSON.parse(command.stdout())).toMatchObject({ event: "failed" });
});
