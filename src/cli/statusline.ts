/** `dragoman statusline`: Claude Code's status line, with what the session really cost. */
import { fstatSync } from "node:fs";
import type { Environment } from "../config/environment";
import { isObject, parseJson } from "../lib/json";
import { readText } from "../lib/net/out/body";
import { callServer } from "./call-server";
import type { PathOf } from "./server-routes";
import { print } from "./terminal";

/** Milliseconds. Claude Code asks after each message, and nobody waits for a status line. */
const patienceMs = 1_500;

/**
 * Reads the JSON that Claude Code writes to stdin. Prints nothing where nothing is known, and if the server is away.
 * Claude Code hands its own variables on: they name the server and the key, also of a team.
 */
export async function statusline({ environment }: { environment: Environment }): Promise<number> {
  const asked = parseJson(await textOfStdin());
  const session = isObject(asked) ? asked.session_id : undefined;
  const { ANTHROPIC_BASE_URL: written, ANTHROPIC_AUTH_TOKEN: key } = process.env;
  const server = written
    ? { url: written, keys: key ? [{ value: key }] : [] }
    : (await import("./running-server")).findServer(environment);
  if (typeof session !== "string" || !server) return 0;
  const line = await lineOf(server.url, server.keys[0]?.value, session).catch(() => "");
  if (line !== "") print(line);
  return 0;
}

/** Empty where a person sits before it, and where there is none. To load `process.stdin` takes as long as all the rest. */
async function textOfStdin(): Promise<string> {
  try {
    return fstatSync(0).isCharacterDevice() ? "" : await Bun.stdin.text();
  } catch {
    return "";
  }
}

async function lineOf(url: string, key: string | undefined, session: string): Promise<string> {
  const path = `${"/usage/line" satisfies PathOf<"get">}?session=${encodeURIComponent(session)}`;
  const response = await callServer({ url: url.replace(/\/$/, "") }, { path, timeoutMs: patienceMs }, key);
  const answer = await readText(response, 10_000);
  return response.ok ? answer.trim() : "";
}
