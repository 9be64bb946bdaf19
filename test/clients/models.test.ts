/** Scenario: which models a set-up names when nobody says, and how it is said in each shell. */
import { describe, expect, test } from "bun:test";
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { editSettings } from "../../src/clients/formats";
import { clientOf } from "../../src/clients/index";
import { type ClientModel, chooseModels } from "../../src/clients/models";
import { setVariables, usualShell } from "../../src/clients/shells";
import { clientStatus } from "../../src/clients/status";
import { models } from "../../src/deploy/documents/client-settings";
import fc from "../support/random";
import { temporaryFolder } from "../support/temporary-folder";

const { claude, gpt, gemini, small, opus } = models;
const like = (model: ClientModel, id: string, more: Partial<ClientModel> = {}): ClientModel => ({
  ...model,
  id,
  ...more,
});

describe("the choice", () => {
  test("the choice of a tool's models is the newest of each family, finished before preview", () => {
    const choice = chooseModels([
      like(claude, "claude-sonnet-4"),
      like(claude, "claude-sonnet-4.5"),
      like(claude, "claude-sonnet-10"),
      like(claude, "claude-sonnet-11", { preview: true }),
      like(opus, `${opus.id}-1m`),
      opus,
      like(gpt, "gpt-5.3"),
      like(gpt, "gpt-5.3-codex"),
      like(gpt, "gpt-4o-2099-11-20"),
      like(gpt, "gpt-9", { endpoints: ["/chat/completions"] }),
      gemini,
      small,
      like(small, `${small.id}-free`, { premium: false }),
    ])!;
    const { all: _, ...chosen } = choice;
    expect(Object.fromEntries(Object.entries(chosen).map(([name, model]) => [name, model?.id]))).toEqual({
      claude: "claude-sonnet-10",
      opus: opus.id,
      haiku: `${small.id}-free`,
      // Claude Code offers the class whatever the plan has.
      fable: opus.id,
      gpt: "gpt-5.3",
      gemini: gemini.id,
      small: `${small.id}-free`,
    });
  });

  test("Claude Code's list says which row stands there for a class that the plan lacks", () => {
    const { variables } = clientOf("claude-code")!.setUp({
      url: "http://localhost",
      models: chooseModels([opus, claude])!,
    });
    const described = Object.entries(variables).filter(([name]) => name.endsWith("_DESCRIPTION"));
    const substitutes = described.filter(([, value]) => value?.startsWith("instead of"));
    expect(substitutes.map(([name, value]) => [name, value?.split(" · ")[0]])).toEqual([
      ["ANTHROPIC_DEFAULT_HAIKU_MODEL_DESCRIPTION", "instead of Claude Haiku"],
      ["ANTHROPIC_DEFAULT_FABLE_MODEL_DESCRIPTION", "instead of Claude Fable"],
    ]);
  });

  const dear = (model: ClientModel, id: string, priceCategory: ClientModel["priceCategory"], light = false) =>
    like(model, id, { priceCategory, light });
  const priced = (model: ClientModel, id: string, input: number, light = false) =>
    like(model, id, { priceCategory: "medium", light, tokens: { input, output: 5 * input, per: 1_000_000 } });
  // biome-ignore format: a table is read by its rows
  test.each<[string, ClientModel[], gpt: string, small: string | undefined, gemini: string | undefined]>([
    ["the newest version whatever its suffix, no dear model of it, and a small one by the list's word", [
      dear(gpt, "gpt-5.5", "high"), dear(gpt, "gpt-6-astra", "high"), dear(gpt, "gpt-6-sol-fast", "medium"),
      dear(gpt, "gpt-6-sol", "medium"), dear(gpt, "gpt-6-luna", "low", true), dear(gpt, "gpt-5-mini", "low", true),
    ], "gpt-6-sol", "gpt-6-luna", undefined],
    ["a very dear one last among equal versions, whatever its id's length", [
      dear(gpt, "gpt-6.2-x", "very_high"), dear(gpt, "gpt-6.2-astra", "high"), dear(gpt, "gpt-6.2-sol-fast", "medium"),
      dear(gemini, "gemini-4-neon", "very_high"), dear(gemini, "gemini-4-argon", "medium"),
    ], "gpt-6.2-sol-fast", undefined, "gemini-4-argon"],
    ["the cheaper one of two that GitHub calls equally dear, and none for small tasks", [
      priced(gemini, "gemini-4-neon", 300), priced(gemini, "gemini-4-carbon", 200), priced(gemini, "gemini-4-hydrogen", 150, true),
      priced(gpt, "gpt-6.2-fast", 300), priced(gpt, "gpt-6.2-solid", 200),
    ], "gpt-6.2-solid", undefined, "gemini-4-carbon"],
  ])("the choice is %s", (_, offered, gptId, smallId, geminiId) => {
    const choice = chooseModels(offered)!;
    expect(choice.gpt.id).toBe(gptId);
    if (smallId) expect(choice.small.id).toBe(smallId);
    if (geminiId) expect(choice.gemini?.id).toBe(geminiId);
  });

  test("the choice of a tool's models makes do with what there is", () => {
    expect(chooseModels([])).toBeUndefined();
    expect(chooseModels([like(gpt, "x; rm -rf /")])).toBeUndefined();
    const only = chooseModels([gemini])!;
    expect([only.claude, only.gpt, only.small, only.opus]).toEqual(Array(4).fill(gemini));
    const haiku = like(claude, "claude-haiku-4.5", { light: false });
    expect(chooseModels([claude, haiku])!.small).toBe(haiku);
  });

  test("the choice of a tool's models names a model of another provider only if there is no other, and offers it last", () => {
    const local = like(gpt, "ollama/gpt-9", { premium: false, endpoints: ["/chat/completions"] });
    const hidden = like(gpt, "openrouter/gpt-9", { picked: false });
    const { all, ...chosen } = chooseModels([local, hidden, gpt, small])!;
    expect(all).toEqual([gpt, small, local]);
    expect(Object.values(chosen)).not.toContain(local);
    expect(chooseModels([local])!.gpt).toBe(local);
  });

  test("the choice of a tool's models leaves out what cannot call tools or is hidden, unless there is nothing else", () => {
    const hidden = like(gpt, "gpt-8", { picked: false });
    expect(chooseModels([hidden, gpt, like(claude, "claude-sonnet-9", { tools: false })])!.all).toEqual([gpt]);
    expect(chooseModels([hidden])!.gpt).toBe(hidden);
  });
});

describe("a shell", () => {
  test("sets what was meant, whatever is in it", () => {
    const printable = fc.string({ unit: fc.integer({ min: 32, max: 126 }).map((code) => String.fromCharCode(code)) });
    const values = fc.sample(printable, 50);
    const lines = values.flatMap((value) => [setVariables({ TRIED: value }, "bash"), `printf '%s\\0' "$TRIED"`]);
    const { stdout } = Bun.spawnSync(["bash", "-c", lines.join("\n")], { timeout: 10_000 });
    expect(stdout.toString().split("\0")).toEqual([...values, ""]);
  });

  test.each([
    ["fish", "set -gx A 'it\\'s \\\\'"],
    ["powershell", "$env:A = 'it''s \\'"],
    ["cmd", 'set "A=it\'s \\"'],
  ] as const)("%s is spoken to in its own way", (shell, line) => {
    expect(setVariables({ A: "it's \\" }, shell)).toBe(line);
  });

  test("cmd gets what was meant, whatever is in it", () => {
    const printable = fc.string({
      unit: fc.oneof(
        fc.constantFrom("%", '"', "^", "PATH", "&", "!", "%PATH%"),
        fc.integer({ min: 33, max: 126 }).map((code) => String.fromCharCode(code)),
      ),
      minLength: 1,
    });
    fc.assert(fc.property(printable, (value) => expect(readByCmd(setVariables({ A: value }, "cmd"))).toBe(value)));
  });

  /**
   * As cmd reads a line at its prompt: first `%NAME%` of a variable that is set is replaced, then `"` begins and ends
   * what is taken as it is, and outside of it `^` is taken away and the next character as it is. `set` itself takes
   * quotes around the whole away. (Stack Overflow 4094699, “How does the Windows Command Interpreter parse scripts?”)
   */
  function readByCmd(line: string): string {
    const replaced = line.replace(/%([^%]*)%/g, (whole, name) => (name === "PATH" ? "C:\\Windows" : whole));
    let [read, quoted] = ["", false];
    for (let at = 0; at < replaced.length; at++) {
      const escaped = !quoted && replaced[at] === "^";
      if (escaped) at++;
      else if (replaced[at] === '"') quoted = !quoted;
      else if (!quoted && /[&|<>]/.test(replaced[at]!)) throw new Error(`another command begins: ${line}`);
      read += replaced[at] ?? "";
    }
    return /^set (?:"A=(.*)"|A=(.*))$/
      .exec(read)!
      .slice(1)
      .find((each) => each !== undefined)!;
  }

  test.each([
    [{ SHELL: "/usr/bin/fish" }, "linux", "fish"],
    [{ SHELL: "/bin/zsh" }, "darwin", "bash"],
    [{ SHELL: "/usr/bin/pwsh" }, "linux", "powershell"],
    [{}, "win32", "powershell"],
    [{}, "linux", "bash"],
  ] as const)("of %j on %s is %s", (env, platform, shell) => {
    expect(usualShell(env, platform)).toBe(shell);
  });
});

describe("a client's state", () => {
  const url = "http://127.0.0.1:4141";
  const stateOf = (text: string | undefined, env: Record<string, string> = {}) => {
    const home = temporaryFolder();
    const file = clientOf("codex").file!.locate({ home, env });
    if (text !== undefined) {
      mkdirSync(dirname(file), { recursive: true });
      writeFileSync(file, text);
    }
    const { state, fault } = clientStatus("codex", { home, env, url });
    return fault === undefined ? state : `${state}: ${fault}`;
  };
  const provider = (address: string, used = "mine") =>
    `model_provider = "${used}"\n[model_providers.mine]\nbase_url = "${address}"\n`;

  test.each([
    [undefined, "absent"],
    ["", "elsewhere"],
    [provider("http://127.0.0.1:4141/v1"), "here"],
    [provider("http://localhost:4141/v1/"), "here"],
    [provider("http://127.0.0.1:4142/v1"), "elsewhere"],
    [provider("http://127.0.0.1:4141/v1", "openai"), "elsewhere"],
    ["a = 1\na = 2\n", "unreadable: line 2: Cannot redefine key 'a'"],
  ])("the state of Codex with the file %j is %s", (text, state) => {
    expect(stateOf(text)).toBe(state);
  });

  test("the state of Claude Code says what is not turned on, whichever way the person wrote it", () => {
    const off = (env: Record<string, string>) => {
      const home = temporaryFolder();
      mkdirSync(join(home, ".claude"));
      writeFileSync(
        join(home, ".claude", "settings.json"),
        JSON.stringify({ env: { ANTHROPIC_BASE_URL: url, ...env } }),
      );
      const names = clientStatus("claude-code", { home, env: {}, url }).off?.map(({ path }) => path.at(-1));
      return names;
    };
    expect(off({})).toEqual([
      "ENABLE_TOOL_SEARCH",
      "CLAUDE_CODE_ENABLE_GATEWAY_MODEL_DISCOVERY",
      "CLAUDE_CODE_GATEWAY_HINT_HEADERS",
      "CLAUDE_CODE_AUTO_MODE_SERVER",
    ]);
    expect(
      off({
        ENABLE_TOOL_SEARCH: "auto:10",
        CLAUDE_CODE_ENABLE_GATEWAY_MODEL_DISCOVERY: "true",
        CLAUDE_CODE_GATEWAY_HINT_HEADERS: "0",
        CLAUDE_CODE_AUTO_MODE_SERVER: "0",
      }),
    ).toEqual(["CLAUDE_CODE_GATEWAY_HINT_HEADERS"]);
  });

  test("settings of an organization on the machine go before those of Claude Code's file, and that is said", () => {
    const home = temporaryFolder();
    for (const [folder, file, address] of [
      [".claude", "settings.json", url],
      ["ClaudeCode", "managed-settings.json", "https://gateway.example"],
    ] as const) {
      mkdirSync(join(home, folder));
      writeFileSync(join(home, folder, file), JSON.stringify({ env: { ANTHROPIC_BASE_URL: address } }));
    }
    expect(clientStatus("claude-code", { home, env: { ProgramFiles: home }, platform: "win32", url })).toMatchObject({
      state: "overridden",
      caveats: [expect.stringContaining("goes before it and names https://gateway.example")],
    });
  });

  test("the state of a client that has no file is absent", () => {
    expect(clientStatus("curl", { home: "/nowhere", env: {}, url })).toEqual({ state: "absent" });
  });
});

describe("an app that is set up in a dialog", () => {
  const place = { models: chooseModels(Object.values(models))! };
  const shown = (id: "xcode" | "cursor" | "jetbrains", url: string, key?: string) =>
    clientOf(id).setUp({ ...place, url, key }).programs[0]!.text;

  test("Xcode takes a port of this machine, and an address with a header for a key or another machine", () => {
    expect(shown("xcode", "http://127.0.0.1:4141")).toMatch(/Locally Hosted\n {2}Port +4141\n/);
    const withKey = shown("xcode", "http://127.0.0.1:4141", "k-1");
    expect(withKey).toMatch(/URL +http:\/\/127\.0\.0\.1:4141\n {2}API Key +k-1\n {2}API Key Header +x-api-key\n/);
    expect(shown("xcode", "https://proxy.example")).toMatch(/Internet Hosted\n {2}URL +https:\/\/proxy\.example\n/);
  });

  test("Cursor is not given an address that its servers cannot reach", () => {
    for (const url of ["http://127.0.0.1:4141", "http://localhost:4141", "http://[::1]:4141"])
      expect(shown("cursor", url)).toMatch(/Base URL +https:\/\/YOUR-PUBLIC-ADDRESS\/v1\n/);
    expect(shown("cursor", "https://proxy.example")).toMatch(/Base URL +https:\/\/proxy\.example\/v1\n/);
  });

  test("JetBrains gets the address with /v1, and the key", () => {
    expect(shown("jetbrains", "http://127.0.0.1:4141", "k-1")).toMatch(/URL +\S+:4141\/v1\n {2}API key +k-1\n/);
  });
});

describe("GitHub Copilot CLI", () => {
  const variables = (model: ClientModel) =>
    clientOf("copilot-cli").setUp({ url: "http://127.0.0.1:4141", models: chooseModels([claude])!, model }).variables;

  test.each([
    [claude, "anthropic", undefined, ""],
    [gpt, "openai", "responses", "/v1"],
    [gemini, "openai", "completions", "/v1"],
  ])("asks %p in its own dialect, with its limits", (model, type, api, path) => {
    expect(variables(model)).toMatchObject({
      COPILOT_PROVIDER_BASE_URL: `http://127.0.0.1:4141${path}`,
      COPILOT_PROVIDER_TYPE: type,
      COPILOT_PROVIDER_MAX_PROMPT_TOKENS: String(model.prompt),
      COPILOT_PROVIDER_MAX_OUTPUT_TOKENS: String(model.output),
    });
    expect(variables(model).COPILOT_PROVIDER_WIRE_API).toBe(api);
    const { COPILOT_PROVIDER_MAX_PROMPT_TOKENS: none } = variables(
      like(model, "x", { prompt: undefined, context: undefined }),
    );
    expect(none).toBeUndefined();
  });
});

test("VS Code asks each model in its own dialect, and does not refer to answers that nobody stores", () => {
  const { edits } = clientOf("vscode").setUp({
    url: "http://127.0.0.1:4141",
    models: chooseModels([claude, gpt, gemini])!,
  });
  const { models: listed } = edits[0]!.value as { models: Record<string, unknown>[] };
  expect(listed.map(({ url, apiType, statefulResponses }) => [url, apiType, statefulResponses])).toEqual([
    ["http://127.0.0.1:4141/v1/messages", "messages", undefined],
    ["http://127.0.0.1:4141/v1/responses", "responses", false],
    ["http://127.0.0.1:4141/v1/chat/completions", "chat-completions", undefined],
  ]);
  expect(listed[0]).toMatchObject({ maxInputTokens: claude.prompt, maxOutputTokens: claude.output, toolCalling: true });
});

describe("crush", () => {
  const settings = (all: ClientModel[]) => {
    const { edits } = clientOf("crush").setUp({ url: "http://127.0.0.1:4141", models: chooseModels(all)! });
    return JSON.parse(editSettings("json", "", edits));
  };

  test("lists each model under the provider of its dialect, with all that its schema requires", () => {
    const { providers, models: chosen } = settings([claude, gpt, gemini, small]);
    expect(chosen).toEqual({
      large: { provider: "dragoman-claude", model: claude.id },
      small: { provider: "dragoman", model: small.id },
    });
    const listed = Object.entries<{ base_url: string; type: string; models: Record<string, unknown>[] }>(providers);
    expect(
      listed.map(([name, { type, base_url, models: own }]) => [name, type, base_url, own.map(({ id }) => id)]),
    ).toEqual([
      ["dragoman", "openai", "http://127.0.0.1:4141/v1", [gpt.id, small.id]],
      ["dragoman-claude", "anthropic", "http://127.0.0.1:4141", [claude.id]],
      ["dragoman-chat", "openai-compat", "http://127.0.0.1:4141/v1", [gemini.id]],
    ]);
    for (const model of listed.flatMap(([, provider]) => provider.models))
      for (const name of requiredByCrush) expect([name, model[name]]).not.toEqual([name, undefined]);
  });

  /** “required” of “Model” in schema.json of charmbracelet/crush. */
  const requiredByCrush = [
    ...["id", "name", "context_window", "default_max_tokens", "can_reason", "supports_attachments"],
    ...["in", "out", "in_cached", "out_cached"].map((each) => `cost_per_1m_${each}`),
  ];

  test("has no provider without models", () => {
    expect(Object.keys(settings([gpt]).providers)).toEqual(["dragoman"]);
  });
});
