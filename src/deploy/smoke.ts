/**
 * Drives an installed dragoman as an editor would, through every part that could have been left out of it: the model
 * routes, the vocabulary in its worker, the pages and their files. Run directly, drives the
 * executable of the target it is given, or the command that follows.
 */
import assert from "node:assert/strict";
import { join } from "node:path";
import { version } from "../../package.json";
import { exampleModels } from "../proxy/upstream/models/known-models";
import { fileName, targets } from "./targets";

const model = exampleModels.claude;

interface Place {
  cwd?: string;
  env?: Record<string, string | undefined>;
}

/** @throws Error when anything is not as it should be. */
export async function drive(command: string[], { cwd, env = process.env }: Place = {}): Promise<void> {
  const told = Bun.spawn([...command, "--version"], { cwd, env, stdin: "ignore", stdout: "pipe", timeout: 60_000 });
  assert.equal((await told.stdout.text()).trim(), version);

  const child = Bun.spawn([...command, "start", "--demo", "--json", "--port", "0", "--stdin-lifetime"], {
    cwd,
    env,
    stdin: "pipe",
    stdout: "pipe",
    stderr: "pipe",
    timeout: 60_000,
  });
  const complained = child.stderr.text();
  const lines = child.stdout.pipeThrough(new TextDecoderStream()).getReader();
  const ready = (await lines.read()).value;
  assert.ok(ready, `It was never ready: ${ready ? "" : await complained}`);
  const { url, version: running } = JSON.parse(ready) as { url: string; version: string };
  assert.equal(running, version);
  await ask(url);
  await look(url);
  child.stdin.end();
  assert.equal(await child.exited, 0, await complained);
  assert.equal((await lines.read()).value, undefined, "stdout carries one line");
}

async function ask(url: string): Promise<void> {
  const messages = [{ role: "user", content: "Hello! Who are you?" }];
  const post = (path: string, body: object) => fetch(url + path, { method: "POST", body: JSON.stringify(body) });
  const said = await post("/v1/messages", { model, max_tokens: 100, messages });
  assert.match(await said.text(), /DEMO/);
  const streamed = await post("/v1/chat/completions", { model, stream: true, messages });
  assert.match(await streamed.text(), /data: \[DONE\]\n\n$/);
  const counted = await post("/v1/messages/count_tokens", { model, messages });
  const { input_tokens: few } = (await counted.json()) as { input_tokens: number };
  // Six tokens of the vocabulary and what frames them; letters alone would be some twenty.
  assert.ok(few > 5 && few < 20, `${few} tokens were counted`);
}

async function look(url: string): Promise<void> {
  for (const page of ["/admin", "/admin/models"]) {
    const html = await (await fetch(url + page)).text();
    assert.match(html, /^<!doctype html>/);
    const files = [...html.matchAll(/(?:href|src)="(\/[^"]+\.(?:css|js|svg)(?:\?[^"]*)?)"/g)].map(([, file]) => file!);
    assert.ok(files.length >= 2, `${page} names its files`);
    for (const file of files) assert.equal((await fetch(url + file)).status, 200, file);
  }
}

if (import.meta.main) {
  const [name, ...command] = process.argv.slice(2);
  const target = targets.find((each) => each.name === name);
  if (!target) throw new Error(`Which target? ${targets.map(({ name }) => name).join(", ")}`);
  const own = [join(import.meta.dir, "../../dist", fileName(target))];
  await drive(command.length > 0 ? command : own);
  console.log(`${command.join(" ") || fileName(target)}: ok`);
}
