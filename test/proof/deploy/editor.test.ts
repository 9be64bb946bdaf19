/** Scenario: the examples for editors in src/cli/README.md, run by Node and by Bun as they stand there. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { program } from "../../support/command";
import { sharedModel } from "../../support/shared-model";
import { until } from "../../support/until";

// Each test starts processes, and the machine may be busy.
const folder = mkdtempSync(join(tmpdir(), "dragoman-editor-"));
const document = await Bun.file(join(import.meta.dir, "../../../src/cli/README.md")).text();
const exampleOf = (name: string) =>
  new RegExp(`<!-- ${name} -->\\n\`\`\`js\\n([^]*?)\`\`\`\\n<!-- /${name} -->`).exec(document)![1]!;

/** A folder with a `dragoman` in it, for the path. */
function installed(name: string, script: string): string {
  const bin = join(folder, name);
  mkdirSync(bin);
  writeFileSync(join(bin, "dragoman"), `#!/bin/sh\n${script}\n`, { mode: 0o755 });
  return bin;
}

const quoted = program.map((word) => `'${word}'`).join(" ");
let demo: string;

const runtimes = ["node", process.execPath];

function runExample(runtime: string, bin: string, env: Record<string, string> = {}) {
  return Bun.spawn([runtime, join(folder, "editor.mjs")], {
    cwd: folder,
    env: { PATH: `${bin}:${process.env.PATH}`, HOME: folder, DRAGOMAN_HOME: join(folder, "data"), ...env },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
    timeout: 30_000,
  });
}

beforeAll(() => {
  for (const name of ["editor", "events"]) writeFileSync(join(folder, `${name}.mjs`), exampleOf(name));
  demo = installed("demo", `echo $$ >> '${folder}/pids'\nexec ${quoted} "$@" --demo`);
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const isThere = (pid: number) => {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
};

/** Each reason of the table that an option or the environment can cause. */
const failures: Record<string, { options?: string; env?: Record<string, string> }> = {
  usage: { options: "--prot 0" },
  port_in_use: { options: `--port $TAKEN` },
  config_invalid: { env: { DRAGOMAN_HOME: join(folder, "broken") } },
  data_folder_unusable: { env: { DRAGOMAN_HOME: "/dev/null/data" } },
  parent_not_running: { options: "--parent-pid 2147483646" },
  log_file_unwritable: { options: "--log-file /dev/null/log" },
  seal_key_missing: { env: { DRAGOMAN_DATABASE_URL: "postgres://nobody@127.0.0.1:1/none" } },
};

describe.if(process.platform !== "win32").each(runtimes)("with %s, the example", (runtime) => {
  test("starts, asks, stops, and leaves nothing behind", async () => {
    const run = runExample(runtime, demo);
    expect(await run.stdout.text()).toContain("DEMO");
    expect(await run.exited).toBe(0);
    expect(await run.stderr.text()).toContain("nothing leaves this machine");
    const pid = Number((await Bun.file(join(folder, "pids")).text()).trim().split("\n").at(-1));
    await until(() => !isThere(pid), "the process has ended");
  });

  test.each(Object.entries(failures))("throws %s when dragoman says so, with its sentence", async (code, cause) => {
    using holder = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: () => new Response() });
    mkdirSync(join(folder, "broken"), { recursive: true, mode: 0o700 });
    writeFileSync(join(folder, "broken/config.json"), '{ "maxRows": }', { mode: 0o600 });
    const name = `${code}-${runtimes.indexOf(runtime)}`;
    const bin = installed(name, `exec ${quoted} "$@" ${cause.options?.replace("$TAKEN", `${holder.port}`) ?? ""}`);
    const run = runExample(runtime, bin, cause.env);
    expect(await run.exited).toBe(1);
    const said = await run.stderr.text();
    expect(said).toMatch(new RegExp(`code: ["']${code}["']`));
    const [, message = ""] = /^dragoman: (.{20})/m.exec(said) ?? [];
    expect(said.split(message).length).toBeGreaterThan(2);
  });

  test("says so when there is no dragoman", async () => {
    const run = Bun.spawn([Bun.which(runtime)!, join(folder, "editor.mjs")], {
      env: { PATH: join(folder, "none") },
      stdin: "ignore",
      stdout: "ignore",
      stderr: "pipe",
      timeout: 30_000,
    });
    expect(await run.exited).toBe(1);
    expect(await run.stderr.text()).toContain("ENOENT");
  });

  test("of events says what an account is, and what a request has cost", async () => {
    const server = Bun.spawn([...program, "start", "--demo", "--json", "--port", "0", "--stdin-lifetime"], {
      env: { PATH: process.env.PATH, HOME: folder, DRAGOMAN_HOME: join(folder, "events") },
      stdin: "pipe",
      stdout: "pipe",
      stderr: "ignore",
    });
    const { value } = await server.stdout.pipeThrough(new TextDecoderStream()).getReader().read();
    const { url } = JSON.parse(value!);
    const run = Bun.spawn([runtime, join(folder, "events.mjs"), url], { stdout: "pipe", stderr: "inherit" });
    let said = "";
    const reading = (async () => {
      for await (const chunk of run.stdout) said += Buffer.from(chunk);
    })();
    await until(() => /^octo-demo is ready: [\d.]+ credits left$/m.test(said), "the accounts are told");
    const messages = [{ role: "user", content: "Hello" }];
    await fetch(`${url}/v1/messages`, {
      method: "POST",
      body: JSON.stringify({ model: sharedModel, max_tokens: 9, messages }),
    });
    await until(() => /: [\d.]+ credits$/m.test(said), "the cost is told");
    server.stdin.end();
    await Promise.all([reading, run.exited, server.exited]);
    expect(run.exitCode).toBe(0);
  });
});
