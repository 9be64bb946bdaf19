/**
 * Real clients from npm do a small task through the demo, on a Claude, a GPT and a Gemini model; and once each with a
 * client key. Needs npm and its registry; not part of the tests, because the clients are large.
 */
import type { Dialect } from "../../src/dialects/hub/conversation";
import { type Attempt, endAll, type Outcome, tryOut } from "./attempt";
import { type Client, claudeCode, codex, models, opencode, type Package } from "./clients";
import { install } from "./install";

/** How many run side by side. */
const atOnce = 3;

const spokenBy = {
  "@ai-sdk/anthropic": "messages",
  "@ai-sdk/openai": "responses",
  "@ai-sdk/openai-compatible": "chat",
} satisfies Record<Package, Dialect>;

/** For each model of the demo, the dialect it is asked in when the client speaks another one or the same. */
const askedIn: Record<keyof typeof models, Record<Dialect, Dialect>> = {
  claude: { messages: "messages", responses: "messages", chat: "chat" },
  gpt: { messages: "responses", responses: "responses", chat: "responses" },
  gemini: { messages: "chat", responses: "chat", chat: "chat" },
};

const names = Object.keys(models) as (keyof typeof models)[];
const onEachModel = (client: Client, spoken: Dialect): Attempt[] => names.map((name) => on(client, spoken, name));
const on = (client: Client, spoken: Dialect, name: keyof typeof models): Attempt => ({
  client,
  model: models[name],
  client_dialect: spoken,
  upstream_dialect: askedIn[name][spoken],
});
const withKey = (attempt: Attempt): Attempt => ({ ...attempt, key: "a-client-key-of-the-owner" });

const attempts: Attempt[] = [
  ...onEachModel(claudeCode, "messages"),
  ...onEachModel(codex, "responses"),
  ...(Object.keys(spokenBy) as Package[]).flatMap((spoken) => onEachModel(opencode(spoken), spokenBy[spoken])),
  withKey(on(claudeCode, "messages", "claude")),
  withKey(on(codex, "responses", "gpt")),
  withKey(on(opencode(), "messages", "claude")),
];

process.on("SIGINT", () => {
  endAll();
  process.exit(130);
});

const packages = [claudeCode.npm, codex.npm, opencode().npm];
const installed = await install(packages);
const versions = new Map(await Promise.all(packages.map(async (npm) => [npm, await installed.version(npm)] as const)));
const widths = [22, 24, 22, 9, 8];
const line = (...cells: string[]) =>
  console.log(
    cells
      .map((cell, at) => cell.padEnd(widths[at] ?? 0))
      .join(" ")
      .trim(),
  );
line("client", "model", "dialects", "requests", "seconds", "");

let failed = 0;
const waiting = [...attempts.entries()];
const outcomes = new Map<number, Outcome>();
let told = 0;

/** Lines come in the order of the list, as soon as they can. */
function tell(): void {
  for (let outcome = outcomes.get(told); outcome; outcome = outcomes.get(told)) {
    const { client, model, client_dialect, upstream_dialect, key } = attempts[told++]!;
    line(
      `${client.name} ${versions.get(client.npm)}`,
      model.id,
      `${client_dialect} → ${upstream_dialect}`,
      String(outcome.requests),
      outcome.seconds.toFixed(1),
      `${outcome.faults.length === 0 ? "ok" : `FAILED: ${outcome.faults.join("; ")}`}${key === undefined ? "" : " (with a client key)"}`,
    );
    if (outcome.faults.length === 0) continue;
    failed++;
    console.log(outcome.said.trim().split("\n").slice(-30).join("\n").replace(/^/gm, "    "));
  }
}

await Promise.all(
  Array.from({ length: atOnce }, async () => {
    for (let next = waiting.shift(); next; next = waiting.shift()) {
      const [at, attempt] = next;
      outcomes.set(
        at,
        await tryOut(attempt, installed).catch((error: Error) => ({
          requests: 0,
          seconds: 0,
          faults: [error.message],
          said: "",
        })),
      );
      tell();
    }
  }),
);
console.log(`${attempts.length - failed} passed, ${failed} failed`);
process.exitCode = failed === 0 ? 0 : 1;
