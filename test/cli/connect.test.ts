/** Scenario: `dragoman connect`: a client's own file is written and put back; what is a person's own is never lost. */
import { afterAll, describe, expect, test } from "bun:test";
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { anthropicId } from "../../src/clients/claude-code-names";
import { settingAt } from "../../src/clients/edit";
import { readSettings, withEdits } from "../../src/clients/formats";
import { type ClientId, clientIds, clientOf } from "../../src/clients/index";
import { clientStatus } from "../../src/clients/status";
import { exampleModels } from "../../src/proxy/upstream/models/known-models";
import { run } from "../support/command";
import { asProcess, inProcess } from "../support/in-process";
import { startProxy } from "../support/proxy";
import { scriptedGithub } from "./bench";
import { personsAt, settings } from "./person";

const key = "a-client-key-of-the-owner-7f3a";

const server = run(["start", "--demo", "--json", "--port", "0"], { env: { DRAGOMAN_API_KEY: key } });
const url = (await server.ready()).url;
afterAll(() => server[Symbol.asyncDispose]());

const { note, person } = personsAt(url, server.process.pid, key);

const withFile = clientIds.filter((id) => clientOf(id).file);
const text = (path: string) => readFileSync(path, "utf8");

describe.each(withFile)("%s", (id) => {
  test.concurrent("where there was no file: written, read by its format, and taken away with its folders", async () => {
    using own = person();
    const { code, stdout, stderr } = await own.connect(id, "--write");
    expect(code).toBe(0);
    expect(own.status(id)).toBe("here");
    expect(statSync(own.path(id)).mode & 0o777).toBe(0o600);
    readSettings(clientOf(id).file!.format, text(own.path(id)));
    expect(stdout + stderr).not.toContain(key);
    expect(stderr).toContain("No test call was made, because no model is free of charge.");
    expect((await own.connect(id, "--undo")).code).toBe(0);
    expect(readdirSync(own.home)).toEqual([]);
    expect(own.backups(id)).toEqual([]);
  });

  test.concurrent("among settings of their own: written twice, with another model, and back to the same bytes and mode", async () => {
    using own = person();
    const before = settings[id]!;
    const path = own.settle(id, before, 0o640);
    for (const model of [exampleModels.gpt, "claude-sonnet-4.6"]) {
      expect((await own.connect(id, "--write", "--model", model)).code).toBe(0);
      expect(text(path)).toContain(id === "claude-code" ? model.replace(".6", "-6") : model);
    }
    expect((await own.connect(id, "--write", "--model", "claude-sonnet-4.6")).stderr).toContain(
      "already has these settings",
    );
    expect(statSync(path).mode & 0o777).toBe(0o640);
    expect(own.status(id)).toBe("here");
    expect(own.backups(id)).toHaveLength(1);
    expect((await own.connect(id, "--undo")).code).toBe(0);
    expect(text(path)).toBe(before);
    expect(statSync(path).mode & 0o777).toBe(0o640);
    expect(own.backups(id)).toEqual([]);
  });
});

describe("what is shown", () => {
  test("the settings, for the person's shell and for others", async () => {
    using own = person();
    const told = await own.connect("claude-code", "--model", exampleModels.gpt.toUpperCase());
    const { code, stdout } = told;
    expect(code).toBe(0);
    expect(await asProcess(["connect", "claude-code", "--model", exampleModels.gpt.toUpperCase()], own.env)).toEqual(
      told,
    );
    expect(stdout).toContain(`"ANTHROPIC_BASE_URL": "${url}"`);
    expect(stdout).toContain(`export ANTHROPIC_AUTH_TOKEN=${key}\n`);
    expect(stdout).toContain("CLAUDE_CODE_MAX_CONTEXT_TOKENS=272000");
    expect(stdout).toContain("(DEMO)");
    expect(existsSync(own.path("claude-code"))).toBe(false);
    expect((await own.connect("claude-code", "--print", "--shell", "fish")).stdout).toContain(
      `set -gx ANTHROPIC_MODEL ${anthropicId(exampleModels.claude)}\n`,
    );
    expect((await own.connect("claude-code", "--shell", "zsh")).stdout).toContain("export ANTHROPIC_MODEL=");
    own.env.SHELL = "/usr/bin/fish";
    expect((await own.connect("anthropic-sdk")).stdout).toContain(`set -gx ANTHROPIC_BASE_URL ${url}\n`);
  });

  test("a printed curl line is answered", async () => {
    using own = person();
    const { stdout } = await own.connect("curl");
    const line = /^curl -N [\s\S]*/m.exec(stdout)![0];
    const said = Bun.spawnSync(["bash", "-c", line], { timeout: 10_000 }).stdout.toString();
    expect(said).toContain('"object":"chat.completion.chunk"');
    expect(said).toEndWith("data: [DONE]\n\n");
  });

  test("that git would commit the file into which the key was put, also where a link leads into its work tree", async () => {
    using own = person();
    const dotfiles = join(own.home, "dotfiles");
    const git = (...args: string[]) =>
      Bun.spawnSync(["git", "-C", dotfiles, ...args], { env: { ...process.env, ...own.env } });
    mkdirSync(dotfiles);
    expect(git("init", "--quiet").exitCode).toBe(0);
    const path = own.settle("codex", "a = 1\n");
    renameSync(path, join(dotfiles, "config.toml"));
    symlinkSync(join(dotfiles, "config.toml"), path);
    const word = /git would commit .*config\.toml, and it contains the client key now/;
    expect((await own.connect("codex", "--write")).stderr).toMatch(word);
    writeFileSync(join(dotfiles, ".gitignore"), "*.toml\n");
    expect((await own.connect("codex", "--write", "--model", exampleModels.gpt)).stderr).not.toMatch(word);
    expect((await own.connect("codex", "--undo")).stderr).not.toMatch(word);
  });

  test("whoever can read the file into which the key was put", async () => {
    using own = person();
    own.settle("codex", settings.codex!, 0o644);
    own.settle("pi", settings.pi!, 0o600);
    expect((await own.connect("codex", "--write")).stderr).toMatch(/Others on this machine can read .*chmod 600/);
    expect((await own.connect("pi", "--write")).stderr).not.toContain("Others on this machine");
  });

  test("the difference, with secrets masked", async () => {
    using own = person();
    own.settle("opencode", settings.opencode!);
    const { stdout } = await own.connect("opencode", "--write");
    expect(stdout).toContain(`--- ~/.config/opencode/opencode.json\n+++ ~/.config/opencode/opencode.json\n@@ `);
    expect(stdout).toContain(`"apiKey": "…${key.slice(-4)}"`);
    expect(stdout).toContain('"apiKey": "…6789"');
    expect(stdout).toContain('"limit": { "context": 1000000, "input": 872000, "output": 128000 }');
    expect(stdout).not.toContain("sk-of-theirs");
    await own.connect("opencode", "--undo");
  });

  test("all clients, with what their files say", async () => {
    using own = person();
    own.settle("codex", settings.codex!);
    own.settle("zed", "{");
    await own.connect("pi", "--write");
    const { code, stdout } = await own.connect();
    const rows = stdout
      .trim()
      .split("\n")
      .map((line) => line.split(/ {2,}/));
    expect(code).toBe(0);
    expect(rows.slice(1).map(([id]) => id)).toEqual(clientIds);
    const state = (id: string) => rows.find(([name]) => name === id)!.at(-1);
    expect([state("crush"), state("aider"), state("codex"), state("zed"), state("pi")]).toEqual([
      "no file yet",
      "printed only",
      "not connected",
      "cannot be read",
      "connected",
    ]);
    await own.connect("pi", "--undo");
  });
});

// biome-ignore format: a table is read by its rows
test.each<[ClientId, string, string]>([
  ["claude-code", '{"env": {"CLAUDE_CODE_USE_VERTEX": "1"}}', "makes Claude Code use Google Vertex AI"],
  ["codex", 'profile = "work"\n[profiles.work]\nmodel_provider = "openai"\n', "use the provider openai"],
  ["claude-code", '{"env": {"HTTP_PROXY": "http://127.0.0.1:1"}}', "HTTP_PROXY in it sends its requests to a proxy"],
  ["claude-code", '{"modelOverrides": {"claude-opus-4-6": "x"}}', "`modelOverrides` in it"],
  ["claude-code", '{"availableModels": ["haiku"]}', `\`availableModels\` in it leaves ${anthropicId(exampleModels.claude)} out`],
  ["codex", 'review_model = "o3"\n', "its `review_model` is o3"],
  ["opencode", '{"enabled_providers": ["litellm"]}', "its `enabled_providers` leaves dragoman out"],
  ["opencode", '{"disabled_providers": ["x", "dragoman"]}', "its `disabled_providers` names dragoman"],
  ["opencode", '{"agent": {"plan": {"model": "openai/o3"}}}', "its `agent.plan.model` is openai/o3"],
  ["gemini-cli", '{"security": {"auth": {"enforcedType": "oauth-personal"}}}', "`security.auth.enforcedType` in it is"],
  ["qwen-code", '{"env": {"https_proxy": "http://127.0.0.1:1", "ALL_PROXY": "http://127.0.0.1:1"}}', "ALL_PROXY in its"],
  ["zed", '{"disable_ai": true}', "its `disable_ai` turns the agent off"],
  ["zed", '{"agent": {"inline_assistant_model": {"provider": "zed.dev"}}}', "its agent's `inline_assistant_model`"],
])("%s is written, and what else in the file keeps it from calling here is said", async (id, before, caveat) => {
  using own = person();
  own.settle(id, before);
  const { code, stderr } = await own.connect(id, "--write");
  expect([code, stderr]).toEqual([0, expect.stringContaining(`points to dragoman now, but `)]);
  expect(stderr).toContain(caveat);
  expect(stderr.indexOf(caveat)).toBeLessThan(stderr.indexOf("Then run:"));
  await own.connect(id, "--undo");
  // A proxy that spares this machine keeps nobody away.
  own.settle(id, id === "claude-code" ? '{"env": {"HTTP_PROXY": "http://127.0.0.1:1", "NO_PROXY": "127.0.0.1"}}' : "");
  expect((await own.connect(id, "--write")).stderr).not.toContain(", but ");
});

test.each<[ClientId, file: string, text: string, caveat: string]>([
  ["codex", "~/.codex/.env", "HTTP_PROXY=http://127.0.0.1:1", "HTTP_PROXY in ~"],
  ["opencode", "~/.config/opencode/config.json", '{"disabled_providers": ["dragoman"]}', "`disabled_providers` names"],
  ["gemini-cli", "~/.gemini/.env", "http_proxy=http://127.0.0.1:1", "http_proxy in its variables sends"],
  ["gemini-cli", "~/system.json", '{"security": {"auth": {"selectedType": "vertex-ai"}}}', "goes before it"],
  ["qwen-code", "~/.qwen/.env", "HTTP_PROXY=http://127.0.0.1:1", "HTTP_PROXY in ~"],
  ["vscode", "~/.config/Code/User/settings.json", '{"chat.disableAIFeatures": true}', "turns its chat off"],
])(
  "%s: what another of its files, %s, keeps from calling here is said, also by doctor",
  async (id, file, given, caveat) => {
    using own = person();
    own.env.GEMINI_CLI_SYSTEM_SETTINGS_PATH = join(own.home, "system.json");
    if (id === "opencode") own.settle(id, "{}");
    const path = join(own.home, file.slice(2));
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, given);
    const { code, stderr } = await own.connect(id, "--write");
    expect([code, stderr.replaceAll(own.home, "~")]).toEqual([0, expect.stringContaining(caveat)]);
    const doctor = await inProcess(["doctor", "--client", id, "--port", new URL(url).port], own.env);
    expect(doctor.stdout.replaceAll(own.home, "~").replace(/\s+/g, " ")).toContain(caveat);
  },
);

test("settings of an organization on the machine go before those of Claude Code's file, and that is said", () => {
  using own = person();
  own.settle("claude-code", JSON.stringify({ env: { ANTHROPIC_BASE_URL: url } }));
  const folder = join(own.home, "ClaudeCode");
  mkdirSync(folder);
  const managed = { env: { ANTHROPIC_BASE_URL: "https://gateway.example" } };
  writeFileSync(join(folder, "managed-settings.json"), JSON.stringify(managed));
  const around = { home: own.home, env: { ProgramFiles: own.home }, platform: "win32", url } as const;
  expect(clientStatus("claude-code", around)).toMatchObject({
    state: "overridden",
    caveats: [expect.stringContaining("goes before it and names https://gateway.example")],
  });
});

test("variables of Claude Code that name models which the server has stay, others are taken out and put back", async () => {
  using own = person();
  const before =
    '{ "env": { "CLAUDE_CODE_SUBAGENT_MODEL": "haiku", "ANTHROPIC_SMALL_FAST_MODEL": "glm-5-air", "OWN": "1" } } // mine\n';
  const path = own.settle("claude-code", before);
  await own.connect("claude-code", "--write");
  const { env } = readSettings("json", text(path)) as { env: object };
  expect(env).toMatchObject({ CLAUDE_CODE_SUBAGENT_MODEL: "haiku", OWN: "1" });
  expect(env).not.toHaveProperty("ANTHROPIC_SMALL_FAST_MODEL");
  await own.connect("claude-code", "--undo");
  expect(text(path)).toBe(before);
  // Put in since, it is named.
  await own.connect("claude-code", "--write");
  writeFileSync(path, text(path).replace('"haiku"', '"glm-5"'));
  const doctor = await inProcess(["doctor", "--client", "claude-code", "--port", new URL(url).port], own.env);
  expect(doctor.stdout).toMatch(/CLAUDE_CODE_SUBAGENT_MODEL in it asks for glm-5/);
});

test.each<[ClientId, before: string, kept: string]>([
  ["claude-code", '{ "model": "opus" }\n', '"model": "opus"'],
  ["claude-code", '{ "env": { "ANTHROPIC_MODEL": "claude-haiku-4-5" } }\n', '"model": "claude-haiku-4-5"'],
  ["codex", `model = "${exampleModels.gpt}" # mine\n`, `model = "${exampleModels.gpt}" # mine`],
  ["gemini-cli", `{ "model": { "name": "${exampleModels.gpt}" } }\n`, `"name": "${exampleModels.gpt}"`],
])(
  "%s: the model of a person's own that the server has stays, unless another is asked for: %s",
  async (id, before, kept) => {
    using own = person();
    const path = own.settle(id, before);
    await own.connect(id, "--write");
    expect(text(path)).toContain(kept);
    const other = await own.connect(id, "--write", "--model", exampleModels.small);
    expect([other.code, text(path)]).toEqual([0, expect.not.stringContaining(kept)]);
    // Chosen by --model or in the tool: the next write does not change it.
    await own.connect(id, "--write");
    expect(text(path)).toContain(exampleModels.small);
    expect((await own.connect(id, "--undo")).code).toBe(0);
    expect(text(path)).toBe(before);
  },
);

describe("what is refused", () => {
  // biome-ignore format: a table is read by its rows
  test.each<[string, (own: ReturnType<typeof person>) => unknown, RegExp]>([
    ["a server", (own) => Object.assign(own.env, { DRAGOMAN_HOME: join(own.home, "data") }), /Start one with `dragoman start`/],
    ["the client key", (own) => delete own.env.DRAGOMAN_API_KEY, /set DRAGOMAN_API_KEY/],
    ["a data folder that keeps anything", (own) => writeFileSync(join(own.env.DRAGOMAN_HOME!, "connect"), ""), /^dragoman: .*file already exists.*connect'.*$/m],
    ["a folder for the file", (own) => writeFileSync(dirname(own.path("codex")), "theirs"), /cannot be reached \(ENOTDIR\)/],
  ])("connecting without %s is refused in a sentence, before anything is written", async (_, take, sentence) => {
    using own = person();
    take(own);
    const { code, stderr } = await own.connect("codex", "--write");
    expect([code, stderr, existsSync(own.path("codex"))]).toEqual([1, expect.stringMatching(sentence), false]);
    expect(stderr).not.toContain("    at ");
  });

  test.each([[["connect", "codex", "--write"]], [["models"]]])(
    "when the server that runs answers otherwise than this version knows: %j",
    async (args) => {
      using own = person();
      using other = Bun.serve({
        port: 0,
        hostname: "127.0.0.1",
        fetch: () => Response.json({ data: [{ id: exampleModels.gpt, kind: "chat" }] }),
      });
      note(own.env.DRAGOMAN_HOME!, other.url.origin);
      const { code, stderr } = await inProcess(args, own.env);
      expect([code, stderr]).toEqual([1, expect.stringContaining("Restart it with this version")]);
      expect(existsSync(own.path("codex"))).toBe(false);
    },
  );

  test.each([
    ["codex", "a = 1\n[x\n", "config.toml is not valid TOML at line 2"],
    ["zed", '{\n  "a": 1\n  "b": 2\n}', "settings.json is not valid JSON at line 3"],
    ["pi", new Uint8Array([0x7b, 0xff, 0x7d]), "models.json is not UTF-8 text"],
    ["codex", "model_providers = {}\n[model_providers.x]\n", "config.toml is not valid TOML at line 2"],
    ["claude-code", '{ "env": 1 }', "a value of another type is where ANTHROPIC_BASE_URL belongs"],
  ] as const)("%s: a file that cannot be edited stays as it is", async (id, given, sentence) => {
    using own = person();
    const path = own.settle(id, given);
    const { code, stderr } = await own.connect(id, "--write");
    expect([code, stderr]).toEqual([1, expect.stringContaining(sentence)]);
    expect(readFileSync(path)).toEqual(Buffer.from(given));
    expect(own.backups(id)).toEqual([]);
  });

  test("a file that cannot be edited without touching theirs, and what to add by hand is printed", async () => {
    using own = person();
    const given = 'model_providers.dragoman.name = "by hand"\n';
    const path = own.settle("codex", given);
    const { code, stdout, stderr } = await own.connect("codex", "--write");
    expect([code, text(path), own.backups("codex")]).toEqual([1, given, []]);
    expect(stderr).toContain("Add yourself what `dragoman connect codex` prints.");
    expect(stdout).toContain("[model_providers.dragoman]\n");
    expect(stdout).toBe((await own.connect("codex")).stdout);
  });

  test("not an inline table: ours is added to it, and taken away again", async () => {
    using own = person();
    const given = 'features = { multi_agent = true } # mine\nmodel_providers = { other = { name = "x" } }\n';
    const path = own.settle("codex", given);
    expect((await own.connect("codex", "--write")).code).toBe(0);
    expect(own.status("codex")).toBe("here");
    expect(text(path)).toContain("features = { multi_agent = true, api_key_model_discovery = true } # mine\n");
    writeFileSync(path, `${text(path)}\n[tui]\na = 1\n`);
    expect((await own.connect("codex", "--undo")).code).toBe(0);
    expect(text(path)).toBe(`${given}\n[tui]\na = 1\n`);
  });

  test.each([
    ["a folder in the file's place", (path: string) => mkdirSync(path, { recursive: true }), "is not a file"],
    ["a pipe in its place", (path: string) => Bun.spawnSync(["mkfifo", path]), "is not a file"],
    ["a link that leads to itself", (path: string) => symlinkSync("config.toml", path), "cannot be reached (ELOOP)"],
  ] as const)("%s", async (_, settle, sentence) => {
    using own = person();
    const path = own.path("codex");
    mkdirSync(dirname(path));
    settle(path);
    const { code, stderr } = await own.connect("codex", "--write");
    expect([code, stderr]).toEqual([1, expect.stringContaining(sentence)]);
    expect(stderr).not.toContain("    at ");
    const listed = await own.connect();
    expect([listed.code, listed.stdout]).toEqual([0, expect.stringMatching(/^codex .* cannot be read$/m)]);
  });
});

describe("the way back", () => {
  test("the way back from a connected tool is one way, also where a link leads to the folder of a file that we made", async () => {
    using own = person();
    const folder = join(own.home, "dotfiles", "codex");
    mkdirSync(folder, { recursive: true });
    symlinkSync("dotfiles/codex", dirname(own.path("codex")));
    await own.connect("codex", "--write");
    await own.connect("codex", "--write", "--model", exampleModels.gpt);
    expect(own.backups("codex")).toHaveLength(1);
    expect((await own.connect("codex", "--undo")).stderr).toContain("is removed: dragoman had created it");
    expect(readdirSync(folder)).toEqual([]);
    expect(own.backups("codex")).toEqual([]);
  });

  test("undoing the connection of a file that is gone says so, and puts it back when it is forced", async () => {
    using own = person();
    const path = own.settle("codex", settings.codex!);
    await own.connect("codex", "--write");
    rmSync(path);
    const { code, stderr } = await own.connect("codex", "--undo");
    expect([code, stderr]).toEqual([1, expect.stringContaining("no longer exists")]);
    expect((await own.connect("codex", "--undo", "--force")).code).toBe(0);
    expect(text(path)).toBe(settings.codex!);
  });

  test("undoing says where a tool leads then, if its earlier settings led somewhere", async () => {
    using own = person();
    own.settle("claude-code", `{ "env": { "ANTHROPIC_BASE_URL": "https://gateway.example" } }`);
    await own.connect("claude-code", "--write");
    const { stderr } = await own.connect("claude-code", "--undo");
    expect(stderr).toContain("~/.claude/settings.json leads to https://gateway.example, as it did before.");
  });

  test("the way back from a connected tool is one way for two processes that write at once", async () => {
    using own = person();
    const path = own.settle("codex", settings.codex!);
    const both = await Promise.all(
      [exampleModels.small, exampleModels.gpt].map((model) =>
        asProcess(["connect", "codex", "--write", "--model", model], own.env),
      ),
    );
    expect(both.map(({ code }) => code)).toEqual([0, 0]);
    expect(own.backups("codex")).toHaveLength(1);
    expect((await asProcess(["connect", "codex", "--undo"], own.env)).code).toBe(0);
    expect(text(path)).toBe(settings.codex!);
  });

  test("the way back from a connected tool leaves what somebody has put in since, in other lines; also when it is written anew", async () => {
    using own = person();
    const path = own.settle("codex", settings.codex!);
    const trusted = '\n[projects."/work"]\ntrust_level = "trusted"\n';
    await own.connect("codex", "--write");
    writeFileSync(path, text(path) + trusted);
    const { code, stderr } = await own.connect("codex", "--undo");
    expect([code, stderr]).toEqual([0, expect.stringContaining("other changes made there since then are kept")]);
    expect(text(path)).toBe(`${settings.codex}\n${trusted}`);
    expect(own.backups("codex")).toEqual([]);

    await own.connect("codex", "--write");
    writeFileSync(path, text(path).replace("# mine", "# mine, and more"));
    await own.connect("codex", "--write", "--model", exampleModels.small);
    expect(text(path)).toContain(`model = "${exampleModels.small}"`);
    expect((await own.connect("codex", "--undo")).stderr).toContain("is restored to what it was");
    expect(text(path)).toBe(`${settings.codex}\n${trusted}`.replace("# mine", "# mine, and more"));
  });

  test.each([
    ["claude-code", '"ENABLE_TOOL_SEARCH": "true"', '"ENABLE_TOOL_SEARCH": "auto"', "env.ENABLE_TOOL_SEARCH"],
    ["codex", 'model_provider = "dragoman"', 'model_provider = "openai"', "model_provider"],
  ] as const)(
    "%s: is not taken over a setting of ours that somebody has changed, unless it is forced",
    async (id, ours, theirs, name) => {
      using own = person();
      const path = own.settle(id, settings[id]!);
      await own.connect(id, "--write");
      expect(text(path)).toContain(ours);
      const more = { "claude-code": ['"stays"', '"stays, and more"'], codex: ["# mine", "# mine, and more"] }[id];
      const changed = text(path).replace(ours, theirs).replace(more[0]!, more[1]!);
      writeFileSync(path, changed);
      const refused = await own.connect(id, "--undo");
      expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining(`changed since (${name})`)]);
      expect(refused.stderr).toContain(`\`dragoman connect ${id} --undo --force\``);
      expect(text(path)).toBe(changed);
      // Written anew, that change is somebody's own, which an undo brings back.
      await own.connect(id, "--write", "--model", exampleModels.gpt);
      expect(text(path)).toContain(more[1]!);
      expect((await own.connect(id, "--undo")).code).toBe(0);
      const { format } = clientOf(id).file!;
      const at = name.split(".");
      expect(readSettings(format, text(path))).toEqual(
        withEdits(readSettings(format, settings[id]!.replace(more[0]!, more[1]!)), [
          { path: at, value: settingAt(readSettings(format, changed), at) },
        ]),
      );
      own.settle(id, settings[id]!);
      await own.connect(id, "--write");
      writeFileSync(path, text(path).replace(ours, theirs).replace(more[0]!, more[1]!));
      expect((await own.connect(id, "--undo")).code).toBe(1);
      const forced = await own.connect(id, "--undo", "--force");
      expect(forced.code).toBe(0);
      // What is theirs stays also then.
      expect(readSettings(format, text(path))).toEqual(readSettings(format, settings[id]!.replace(more[0]!, more[1]!)));
      expect(text(path)).toContain(more[1]!);
      const kept = /kept in (\S+)\.\n/.exec(forced.stderr)![1]!;
      expect(text(kept)).toContain("and more");
      expect(statSync(kept).mode & 0o777).toBe(0o600);
      expect(own.backups(id).filter((file) => file.endsWith(".json"))).toEqual([]);
    },
  );

  test("undoing the connection of a file that does not read any more says what a forced one does, and that is what it does", async () => {
    using own = person();
    const path = own.path("claude-code");
    await own.connect("claude-code", "--write");
    writeFileSync(path, `${text(path)}}`);
    const refused = await own.connect("claude-code", "--undo");
    expect([refused.code, refused.stderr]).toEqual([
      1,
      expect.stringContaining("removes the file, because there was none before"),
    ]);
    const forced = await own.connect("claude-code", "--undo", "--force");
    expect([forced.code, existsSync(path)]).toEqual([0, false]);
    expect(text(/kept in (\S+)\.\n/.exec(forced.stderr)![1]!)).toEndWith("}\n}");
  });

  const listIn = (text: string) => (readSettings("json-list", text).list ?? []) as object[];
  const anew = (now: string, more: object) => JSON.stringify({ ...readSettings("json", now), ...more }, null, 2);
  /** What a person or the client itself makes of the written file, from what was there before, and what an undo leaves: nothing where it refuses. */
  const changed: [
    what: string,
    id: ClientId,
    before: string,
    change: (now: string) => string,
    after: string | undefined,
  ][] = [
    ["a line in a file that we made", "codex", "", (now) => `# mine\n${now}`, "# mine\n"],
    ["another key in a table of ours", "codex", settings.codex!, (now) => `${now}request_max_retries = 4\n`, undefined],
    [
      "a table that names ours",
      "codex",
      settings.codex!,
      (now) => `${now}\n[profiles.mine]\nmodel_provider = "dragoman"\n`,
      `${settings.codex}\n\n[profiles.mine]\nmodel_provider = "dragoman"\n`,
    ],
    ["a note of its first run", "qwen-code", "", (now) => anew(now, { $version: 4 }), ""],
    [
      "a note of each run",
      "cline",
      "",
      (now) => {
        const noted = JSON.parse(now);
        noted.providers["openai-compatible"].updatedAt = new Date().toISOString();
        return JSON.stringify({ version: 1, modes: {}, ...noted }, null, 2);
      },
      "",
    ],
    ...(
      [
        ["claude-code", (now) => anew(now, { model: `${exampleModels.gpt}:claude` })],
        ["codex", (now) => now.replace(/^model = .*/m, `model = "${exampleModels.small}"`)],
        [
          "gemini-cli",
          (now) =>
            now
              .replace(/"name": "[^"]+"/, `"name": "${exampleModels.small}"`)
              .replace(/,?\s*\}\s*$/, ', "mcpServers": {} }'),
        ],
        ["qwen-code", (now) => anew(now, { model: { name: exampleModels.small } })],
      ] as [ClientId, (now: string) => string][]
    ).map(([id, choose]): (typeof changed)[number] => ["another model", id, settings[id]!, choose, settings[id]!]),
  ];

  test.concurrent.each(changed)("the way back goes past %s, put in by %s", async (_, id, before, change, after) => {
    using own = person();
    const path = own.path(id);
    if (before !== "") own.settle(id, before);
    await own.connect(id, "--write");
    const written = change(text(path));
    expect(written).not.toBe(text(path));
    writeFileSync(path, written);
    const { code } = await own.connect(id, "--undo");
    expect([code, existsSync(path) ? text(path) : ""]).toEqual([after === undefined ? 1 : 0, after ?? written]);
  });

  test("the way back from a connected tool knows what VS Code notes in our group, and prints anew", async () => {
    for (const before of ["", "[]", settings.vscode!]) {
      using own = person();
      const path = own.path("vscode");
      const besides = join(dirname(path), "settings.json");
      const mine = '{\n\t"editor.tabSize": 3, // mine\n}';
      if (before !== "") {
        own.settle("vscode", before);
        writeFileSync(besides, mine);
      }
      await own.connect("vscode", "--write");
      expect(readSettings("json", text(besides))["chat.agentHost.byokModels.enabled"]).toBe(true);
      const [ours, ...theirs] = listIn(text(path)).toReversed();
      const noted = {
        ...ours,
        apiKey: `\${input:chat.lm.secret.2}`,
        settings: { [exampleModels.gpt]: { reasoningEffort: "low" } },
      };
      writeFileSync(path, JSON.stringify([...theirs.toReversed(), noted], null, "\t"));
      expect((await own.connect("vscode", "--undo")).code).toBe(0);
      expect([path, besides].map((each) => (existsSync(each) ? text(each) : ""))).toEqual([
        before,
        before === "" ? "" : mine,
      ]);
    }
  });

  test.each([
    ["", 0o600],
    ["# mine\r\nexport OTHER='stays' # theirs\r\nGEMINI_API_KEY=theirs\r\n\r\nLAST=1", 0o640],
  ])(
    "undoing the connection of Gemini CLI leads back to the same bytes in both of its files, from %j",
    async (before, mode) => {
      using own = person();
      const variables = join(dirname(own.path("gemini-cli")), ".env");
      own.settle("gemini-cli", settings["gemini-cli"]!);
      if (before !== "") writeFileSync(variables, before, { mode });
      for (const model of [exampleModels.gpt, "claude-sonnet-4.6"]) {
        const { code, stdout, stderr } = await own.connect("gemini-cli", "--write", "--model", model);
        expect([code, stdout + stderr]).toEqual([0, expect.not.stringContaining(key)]);
        expect(stderr.split("`dragoman connect gemini-cli --undo`")).toHaveLength(2);
      }
      expect(own.status("gemini-cli")).toBe("here");
      expect(text(variables)).toContain(`GOOGLE_GEMINI_BASE_URL=${url}`);
      expect(text(variables)).toContain(`GEMINI_API_KEY=${key}`);
      if (before !== "") expect(text(variables)).toStartWith("# mine\r\nexport OTHER='stays' # theirs\r\n");
      expect(statSync(variables).mode & 0o777).toBe(mode);
      const written = readSettings("json", text(own.path("gemini-cli")));
      // 936,000 tokens of the 1,048,576 that it assumes, and four fifths of them.
      expect(written.model).toEqual({ name: "claude-sonnet-4.6", compressionThreshold: 0.714 });
      expect((await own.connect("gemini-cli", "--undo")).code).toBe(0);
      expect(existsSync(variables) ? text(variables) : "").toBe(before);
      expect(text(own.path("gemini-cli"))).toBe(settings["gemini-cli"]!);
      expect(own.backups("gemini-cli").concat(own.backups("gemini-cli.env" as ClientId))).toEqual([]);
    },
  );

  test("undoing Gemini CLI's variables keeps what somebody put into them since, and a setting of the shell goes before the file", async () => {
    using own = person();
    const variables = join(dirname(own.path("gemini-cli")), ".env");
    await own.connect("gemini-cli", "--write");
    writeFileSync(variables, `# theirs\n${text(variables)}THEIRS=1\n`);
    expect(own.status("gemini-cli", { GOOGLE_GEMINI_BASE_URL: "http://127.0.0.1:1" })).toBe("elsewhere");
    expect((await own.connect("gemini-cli", "--undo")).code).toBe(0);
    expect(text(variables)).toBe("# theirs\nTHEIRS=1\n");
    expect(existsSync(own.path("gemini-cli"))).toBe(false);
  });

  test("undoing Gemini CLI's settings after another way to sign in has taken them over says so", async () => {
    using own = person();
    await own.connect("gemini-cli", "--write");
    const written = readSettings("json", text(own.path("gemini-cli")));
    own.settle("gemini-cli", JSON.stringify({ ...written, security: { auth: { selectedType: "vertex-ai" } } }));
    expect(own.status("gemini-cli")).toBe("overridden");
    const { stdout } = await own.connect("gemini-cli");
    expect(stdout).toContain(`export GOOGLE_GEMINI_BASE_URL=${url}`);
    expect(stdout).toContain(`In ~/.gemini/.env:\n\nGOOGLE_GEMINI_BASE_URL=${url}`);
  });

  test("the way back from a connected tool says so when there is nothing to take back, and begins anew when the file was put back by hand", async () => {
    using own = person();
    const path = own.settle("codex", settings.codex!);
    const { code, stderr } = await own.connect("codex", "--undo");
    expect([code, stderr]).toEqual([0, expect.stringContaining("Nothing to undo")]);
    await own.connect("codex", "--write");
    writeFileSync(path, settings.codex!);
    await own.connect("codex", "--write");
    await own.connect("codex", "--undo");
    expect([text(path), own.backups("codex")]).toEqual([settings.codex!, []]);
  });

  test("the way back from a connected tool is found also when the variable that moved the file is not set any more", async () => {
    using own = person();
    own.env.CODEX_HOME = join(own.home, "elsewhere");
    await own.connect("codex", "--write");
    const path = join(own.home, "elsewhere", "config.toml");
    expect(text(path)).toContain("dragoman");
    delete own.env.CODEX_HOME;
    expect((await own.connect("codex", "--undo")).code).toBe(0);
    expect(readdirSync(own.home)).toEqual([]);
  });

  test("a folder in which the client has put something meanwhile stays", async () => {
    using own = person();
    await own.connect("pi", "--write");
    writeFileSync(join(own.home, ".pi", "sessions"), "x");
    await own.connect("pi", "--undo");
    expect(readdirSync(join(own.home, ".pi"))).toEqual(["sessions"]);
  });

  test("between backup and write: the next write and the way back know it", async () => {
    using own = person();
    const path = own.settle("zed", settings.zed!);
    await own.connect("zed", "--write");
    // The state in which a process that is killed there leaves it.
    writeFileSync(path, settings.zed!);
    writeFileSync(`${path}.tmp-999999999-0a1b2c`, "half");
    writeFileSync(`${dirname(path)}/other.tmp-999999999-0a1b2c`, "somebody else's");
    const { code, stderr } = await own.connect("zed", "--undo");
    expect([code, stderr]).toEqual([0, expect.stringContaining("is already what it was before")]);
    expect(readdirSync(dirname(path)).toSorted()).toEqual(["other.tmp-999999999-0a1b2c", "settings.json"]);
    expect(own.backups("zed")).toEqual([]);
  });
});

describe("the call that tries it", () => {
  /** A server in this process, known in a data folder of its own. */
  async function serving() {
    const proxy = await startProxy({ demo: { generation: "C" } });
    note(proxy.home, proxy.url);
    return proxy;
  }

  /** As the upstream lists a model that is paid for by its tokens. */
  const listed = (id: string, category: string, prices: [input: number, output: number], more: object = {}) => ({
    ...{
      id,
      supported_endpoints: ["/responses"],
      model_picker_enabled: true,
      model_picker_category: category,
      ...more,
    },
    capabilities: { type: "chat", supports: { tool_calls: true } },
    billing: {
      token_prices: { batch_size: 1_000_000, default: { input_price: prices[0], output_price: prices[1] } },
    },
  });

  test("models are chosen by what the list says of their size and price", async () => {
    await using proxy = await serving();
    const one = (id: string, category: string, price: string) =>
      listed(id, category, [250, 1500], { model_picker_price_category: price });
    const models = [
      one("gpt-6-luna", "lightweight", "low"),
      one("gpt-6-solar", "powerful", "medium"),
      one("gpt-6-sol-2", "powerful", "high"),
    ];
    proxy.demo.intercept("/models", () => Response.json({ data: models }));
    using own = person(proxy.home);
    delete own.env.DRAGOMAN_API_KEY;
    await own.connect("opencode", "--write");
    await own.connect("codex", "--write");
    expect(readSettings("json", text(own.path("opencode")))).toMatchObject({ small_model: "dragoman/gpt-6-luna" });
    expect(readSettings("toml", text(own.path("codex")))).toMatchObject({ model: "gpt-6-solar" });
  });

  test("the call that tries a connected tool costs nothing, or waits to be asked for, and is to the cheapest small model", async () => {
    await using proxy = await serving();
    const models = [
      listed("gpt-6.2-sol", "powerful", [1, 2]),
      listed("gpt-6-luna", "lightweight", [20, 100]),
      listed("gpt-5.6-luna", "lightweight", [10, 50]),
    ];
    proxy.demo.intercept("/models", () => Response.json({ data: models }));
    using own = person(proxy.home);
    delete own.env.DRAGOMAN_API_KEY;
    const { code, stderr } = await own.connect("codex", "--write");
    expect(code).toBe(0);
    const call = "with gpt-5.6-luna; it costs at most 0.052 AI credits.\n";
    expect(stderr).toContain(
      `No test call was made, because no model is free of charge. \`dragoman connect codex --test\` makes one ${call}`,
    );
    expect(proxy.rows()).toEqual([]);
    const asked = await own.connect("codex", "--test");
    expect(asked.stderr).toContain(`${call}Answered in`);
    const [row] = proxy.rows();
    expect(row).toMatchObject({ path: "/v1/responses", http_status: 200, initiator: "user" });
    expect(proxy.demo.journal.at(-1)!.body).toMatchObject({ model: "gpt-5.6-luna", max_output_tokens: 1024 });
  });

  test("the call that tries a connected tool ends with 1 and the reason when it is not answered; the file stays written", async () => {
    await using proxy = await serving();
    for (const path of ["/responses", "/chat/completions"])
      proxy.demo.intercept(path, () =>
        Response.json({ error: { message: "The model is out for lunch.", code: "lunch" } }, { status: 400 }),
      );
    using own = person(proxy.home);
    delete own.env.DRAGOMAN_API_KEY;
    const { code, stderr } = await own.connect("codex", "--write", "--test");
    expect(code).toBe(1);
    expect(stderr).toContain("The test call failed.");
    expect(stderr).toContain("The model is out for lunch.");
    expect(text(own.path("codex"))).toContain(proxy.url);
  });
});

test("the real server goes before the demo beside it, its config's key before the environment's, and the demo's keys are made on its page", async () => {
  await using github = scriptedGithub();
  github.signIn("octo-demo");
  writeFileSync(join(github.data, "config.json"), JSON.stringify({ auth: { apiKeys: ["k-of-the-config-01"] } }));
  await using demo = run(["start", "--demo", "--json", "--port", "0"], { env: github.env });
  const { url } = await demo.ready();
  await using real = run(["start", "--json", "--port", "0"], { env: github.env });
  const { url: address } = await real.ready();
  using own = person(github.data);
  const { code, stdout } = await own.connect("codex");
  expect(code).toBe(0);
  expect(stdout).not.toContain("DEMO");
  expect(stdout).toContain(`base_url = "${address}/v1"`);
  expect(stdout).toContain('experimental_bearer_token = "k-of-the-config-01"');
  real.process.kill("SIGTERM");
  await real.exited;
  expect((await own.connect("claude-code")).stdout).toContain("(DEMO)");
  // `key add` and `key rm` change the real config.
  const headers = { "content-type": "application/json" };
  await fetch(`${url}/api/admin/keys`, { method: "POST", headers, body: '{"name":"codex"}' });
  const printed = await own.connect("codex");
  expect(printed.stderr).toContain(`The page ${url}/admin/keys makes one`);
  expect(printed.stderr).toContain("connect codex --write` makes one");
  expect((await own.connect("curl")).stderr).not.toContain("--write");
  expect((await own.connect("codex", "--write")).code).toBe(0);
  expect((await own.connect("codex", "--undo")).stderr).toContain(`The page ${url}/admin/keys removes it.`);
});

test("the status line of Claude Code is a command, and undo takes it away", async () => {
  using own = person();
  const path = own.settle("claude-code", settings["claude-code"]!);
  expect((await own.connect("claude-code", "--write", "--statusline")).code).toBe(0);
  expect(JSON.parse(text(path)).statusLine).toEqual({ type: "command", command: "dragoman statusline" });
  expect((await own.connect("claude-code", "--undo")).code).toBe(0);
  expect(text(path)).toBe(settings["claude-code"]!);
  expect((await own.connect("codex", "--statusline")).stderr).toContain("--statusline is for claude-code only");
});

test("a client whose settings cannot name a project gets an address of the project", async () => {
  using own = person();
  expect((await own.connect("qwen-code", "--write", "--project", "web shop")).code).toBe(0);
  expect(text(own.path("qwen-code"))).toContain(`${url}/p/web%20shop`);
  expect(own.status("qwen-code")).toBe("here");
  expect((await own.connect("qwen-code", "--project", "a/b")).code).toBe(2);
});

test.each<[ClientId, file: string, at: string[], value: string]>([
  ["claude-code", ".claude/settings.local.json", ["env", "ANTHROPIC_CUSTOM_HEADERS"], "x-dragoman-project: web shop"],
  ["opencode", "opencode.json", ["provider", "dragoman", "options", "headers", "x-dragoman-project"], "web shop"],
  // Codex ignores providers in the files of a project.
  [
    "codex",
    "~/.codex/web-shop.config.toml",
    ["model_providers", "dragoman", "http_headers", "x-dragoman-project"],
    "web shop",
  ],
])(
  "%s: a project is named in %s, and undo in the same folder brings back the same bytes",
  async (id, file, at, value) => {
    using own = person();
    const work = join(own.home, "work");
    const path = file.startsWith("~/") ? join(own.home, file.slice(2)) : join(work, file);
    for (const folder of [work, dirname(path)]) mkdirSync(folder, { recursive: true });
    writeFileSync(path, settings[id]!);
    const connect = async (cwd: string, ...options: string[]) => {
      await using command = run(["connect", id, "--project", "web shop", ...options], { env: own.env, cwd });
      return [await command.exited, command.stderr()] as const;
    };
    expect((await connect(work, "--write"))[0]).toBe(0);
    const written = readSettings(clientOf(id).file!.format, text(path));
    expect([settingAt(written, at), text(path).includes(key)]).toEqual([value, false]);
    expect(existsSync(own.path(id))).toBe(false);
    // Another folder has files of its own.
    if (!file.startsWith("~/"))
      expect(await connect(own.home, "--undo", "--yes")).toEqual([0, expect.stringContaining("Nothing to undo")]);
    expect((await connect(work, "--undo", "--yes"))[0]).toBe(0);
    expect([text(path), own.backups(id), own.backups(`${id}.project` as ClientId)]).toEqual([settings[id]!, [], []]);
  },
);

test("--project takes no options of other settings, and prints what it would write", async () => {
  using own = person();
  expect((await own.connect("codex", "--project", "acme", "--test")).code).toBe(2);
  const { stdout, stderr } = await own.connect("codex", "--project", "acme");
  expect(stdout).toContain('x-dragoman-project = "acme"');
  expect(stderr).toContain("Then run: codex --profile acme");
});
