/**
 * GitHub's Copilot CLI as far as dragoman asks it: the answers of version 1.0.102, protocol 3, as they were recorded on 2026-11-28
 * without an account, on loopback. As a program it speaks for a folder, whose `state.json` says what is different.
 */
import { appendFileSync, chmodSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

interface RuntimeState {
  login?: string;
  baseUrl: string;
  apiKey: string;
  /** In place of the answer of a method, or of part of it. */
  differs?: Record<string, { error?: object; result?: object }>;
}

/** @returns Its command, and what it was asked since. */
export function installRuntime(folder: string, state: RuntimeState) {
  const command = join(folder, "copilot");
  writeFileSync(command, `#!/bin/sh\nexec "${process.execPath}" "${import.meta.path}" "${folder}" "$@"\n`);
  chmodSync(command, 0o755);
  const asked = join(folder, "asked");
  const set = (changes: Partial<RuntimeState>) =>
    writeFileSync(join(folder, "state.json"), JSON.stringify({ ...state, ...changes }));
  set({});
  writeFileSync(asked, "");
  return { command, set, asked: () => readFileSync(asked, "utf8").trim().split("\n") };
}

function answersOf({ login, baseUrl, apiKey }: RuntimeState): Record<string, { error?: object; result?: object }> {
  const headers = {
    "Content-Type": "application/json",
    Accept: "application/json",
    "Openai-Intent": "conversation-agent",
    "X-Initiator": "user",
    "X-GitHub-Api-Version": "2026-08-01",
    "Copilot-Integration-Id": "copilot-developer-cli",
    "Copilot-Harness-Id": "copilot-sdk",
    "X-Interaction-Id": "dcbd2f81-b230-43a2-9128-49ceb01ec6ca",
    "User-Agent": "copilot/1.0.102 (linux v24.20.0) term/unknown",
    "Editor-Version": "copilot/1.0.102",
    Authorization: `Bearer ${apiKey}`,
  };
  const refused = (message: string) => ({ error: { code: -32603, message } });
  return {
    connect: { result: { ok: true, protocolVersion: 3, version: "1.0.102", taskKinds: ["agent", "shell"] } },
    "auth.getStatus": {
      result: login
        ? { isAuthenticated: true, authType: "user", host: "https://github.com", login, statusMessage: login }
        : { isAuthenticated: false, statusMessage: "Not authenticated" },
    },
    "session.create": { result: { sessionId: "s-1", mode: "interactive", modelState: {} } },
    "session.provider.getEndpoint":
      process.env.COPILOT_ALLOW_GET_PROVIDER_ENDPOINT === "true"
        ? { result: { type: "openai", wireApi: "completions", baseUrl, apiKey, headers } }
        : refused("To enable this API, set COPILOT_ALLOW_GET_PROVIDER_ENDPOINT=true"),
    "session.delete": { result: { success: true } },
    "runtime.shutdown": { result: {} },
  };
}

async function speak(folder: string, flags: readonly string[]): Promise<void> {
  const state = JSON.parse(readFileSync(join(folder, "state.json"), "utf8")) as RuntimeState;
  const answers = { ...answersOf(state), ...state.differs };
  const send = (message: object) => {
    const text = JSON.stringify({ jsonrpc: "2.0", ...message });
    process.stdout.write(`Content-Length: ${Buffer.byteLength(text)}\r\n\r\n${text}`);
  };
  const secrets = Object.keys(process.env).filter((name) => /^(?:DRAGOMAN_|ADMIN_TOKEN)/.test(name));
  appendFileSync(join(folder, "asked"), `start ${flags.join(" ")} ${secrets.join(" ")}\n`);
  let held = "";
  for await (const bytes of process.stdin) {
    held += bytes;
    for (
      let found = /^Content-Length: (\d+)\r\n\r\n/.exec(held);
      found;
      found = /^Content-Length: (\d+)\r\n\r\n/.exec(held)
    ) {
      const end = found[0].length + Number(found[1]);
      if (held.length < end) break;
      const { id, method, error } = JSON.parse(held.slice(found[0].length, end));
      held = held.slice(end);
      appendFileSync(join(folder, "asked"), `${method ?? `answered ${error.code}`}\n`);
      if (method === undefined) continue;
      // It tells what happens, and asks for permissions, between its answers.
      if (method === "session.create") {
        send({ method: "session.lifecycle", params: { type: "session.created", sessionId: "s-1" } });
        send({ id: 900, method: "session.requestPermission", params: {} });
      }
      send({ id, ...(answers[method] ?? { error: { code: -32601, message: `Unhandled method ${method}` } }) });
    }
  }
}

if (import.meta.main) await speak(process.argv[2]!, process.argv.slice(3));
