/** A person with a home folder, in which `connect` writes the files of their tools. */
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { type ClientId, clientOf } from "../../src/clients/index";
import { clientStatus } from "../../src/clients/status";
import { inProcess } from "../support/in-process";
import { quickest } from "../support/quickest";

/** @param url Where a demo listens. @param pid Its process. @param key A client key that it takes. */
export function personsAt(url: string, pid: number, key: string) {
  /** Notes where a server listens, as that of another process: a note of one's own process is one that a killed server left. */
  const note = (folder: string, at: string) =>
    writeFileSync(join(folder, "running.json"), JSON.stringify({ url: at, pid }), { mode: 0o600 });

  /** A person's own folder, with a data folder in which the demo is known, or where another server is. */
  function person(data?: string) {
    const home = mkdtempSync(join(quickest(), "dragoman-home-"));
    const own = mkdtempSync(join(quickest(), "dragoman-data-"));
    mkdirSync(join(own, "demo"));
    note(join(own, "demo"), url);
    const env: Record<string, string> = {
      HOME: home,
      DRAGOMAN_HOME: data ?? own,
      DRAGOMAN_API_KEY: key,
      SHELL: "/bin/bash",
      // Bun's own, which would lie in the home.
      BUN_RUNTIME_TRANSPILER_CACHE_PATH: join(tmpdir(), "dragoman-test-transpiled"),
    };
    return {
      home,
      env,
      path: (id: ClientId) => clientOf(id).file!.locate({ home, env: {} }),
      /** Puts a file there that is theirs. */
      settle(id: ClientId, text: string | Uint8Array, mode = 0o600) {
        const path = this.path(id);
        mkdirSync(dirname(path), { recursive: true });
        writeFileSync(path, text);
        chmodSync(path, mode);
        return path;
      },
      connect(...args: string[]) {
        return inProcess(["connect", ...args], this.env);
      },
      status(id: ClientId, env: Record<string, string> = {}) {
        return clientStatus(id, { home, env, url }).state;
      },
      /** What is kept of the client's file. */
      backups(id: ClientId) {
        const folder = join(data ?? own, "connect");
        return existsSync(folder) ? readdirSync(folder).filter((name) => name.startsWith(`${id}-`)) : [];
      },
      [Symbol.dispose]() {
        for (const folder of [home, own]) rmSync(folder, { recursive: true, force: true });
      },
    };
  }

  return { note, person };
}

/** What people have in these files. */
export const settings: Partial<Record<ClientId, string>> = {
  "claude-code": `{\r\n\t"permissions": { "allow": ["Bash(git status)"] },\r\n\t"env": { "MY_OWN": "stays" }\r\n}`,
  codex: `# mine\nmodel = "o3" # for now\n\n[mcp_servers.x]\ncommand = "a"`,
  opencode: `{\n    // mine\n    "theme": "system", /* light? */\n    "provider": { "own": { "options": { "apiKey": "sk-of-theirs-0123456789" } } },\n}\n`,
  "gemini-cli": `{\n  // mine\n  "ui": { "theme": "GitHub" },\n  "security": { "auth": { "selectedType": "oauth-personal" } },\n  "model": { "name": "auto" /* before */ },\n}\n`,
  cline: `{"version":1,"lastUsedProvider":"cline","modes":{},"providers":{"cline":{"settings":{"provider":"cline"},"updatedAt":"2026-11-21T12:33:52.346Z","tokenSource":"manual"}}}`,
  zed: `// Zed settings\n{\n  "theme": "One Dark",\n  "agent": {\n    "default_model": { "provider": "zed.dev", "model": "x" }, // before\n    "play_sound": true,\n  },\n}\n`,
  pi: `{ "providers": {} }\n`,
  vscode: `[\n\t// mine\n\t{\n\t\t"name": "OpenRouter",\n\t\t"vendor": "openrouter",\n\t\t"apiKey": "\${input:chat.lm.secret.1}" /* secret */\n\t},\n]`,
  crush: `{"$schema":"https://charm.land/crush.json","providers":{"ollama":{"base_url":"http://127.0.0.1:1/v1","models":[]}},"options":{"debug":false}}`,
  "qwen-code": `{\r\n  "$version": 4,\r\n  "modelProviders": {\r\n    // mine\r\n    "openai": [\r\n      { "id": "own", "name": "own", "baseUrl": "http://127.0.0.1:1/v1" }, // theirs\r\n    ]\r\n  },\r\n  "model": { "name": "own" }\r\n}\r\n`,
};
