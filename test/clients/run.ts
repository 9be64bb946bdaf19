/**
 * Real clients from npm, pointed at the demo by `dragoman connect --write`, do a small task on a Claude, a GPT and a
 * Gemini model; once each with a client key, and once where a person has settings already. `--undo` ends each run. Then what cannot
 * be served must be told at once. Needs npm and its registry; not part of the tests, because the clients are large.
 * `bun run test:clients [client …]` tries only those.
 */
import { clientOf } from "../../src/clients/index";
import { models } from "../../src/deploy/documents/client-settings";
import { Collected, type Family, type Feature } from "../../src/deploy/documents/works-with";
import type { ClientDialect, Dialect } from "../../src/dialects/hub/conversation";
import { lastLines } from "./alone";
import { autoOutcomes } from "./auto-cases";
import { type Tool, tools } from "./clients";
import { tellings } from "./error-cases";
import { install } from "./install";
import { sessions } from "./session-cases";
import { strengths } from "./strength-cases";
import { type Attempt, endAll, type Outcome, tryOut } from "./try-client";

/** How many run side by side. */
const atOnce = 3;

/** For each model of the demo, the dialect it is asked in when the client speaks another one or the same. */
const askedIn = {
  claude: { messages: "messages", responses: "messages", chat: "chat", gemini: "messages" },
  gpt: { messages: "responses", responses: "responses", chat: "responses", gemini: "responses" },
  gemini: { messages: "chat", responses: "chat", chat: "chat", gemini: "chat" },
} satisfies Partial<Record<keyof typeof models, Record<ClientDialect, Dialect>>>;

const names = Object.keys(askedIn) as (keyof typeof askedIn)[];
const on = (tool: Tool, spoken: ClientDialect, name: keyof typeof askedIn): Attempt => ({
  tool,
  model: models[name],
  client_dialect: spoken,
  upstream_dialect: askedIn[name][spoken],
});
const onEachModel = (tool: Tool, spoken: ClientDialect): Attempt[] => names.map((name) => on(tool, spoken, name));
const withKey = (attempt: Attempt): Attempt => ({ ...attempt, key: "a-client-key-of-the-owner" });
const searching = (attempt: Attempt): Attempt => ({ ...attempt, searches: true });
const settled = (attempt: Attempt): Attempt => ({ ...attempt, settled: true });

const { claudeCode, codex, opencode, geminiCli, copilotCli, qwenCode, continueCli, pi } = tools;

/** opencode's provider packages. What `connect` writes is the one of the dialect that the model is served in. */
const packages = {
  messages: "@ai-sdk/anthropic",
  responses: "@ai-sdk/openai",
  chat: "@ai-sdk/openai-compatible",
} satisfies Record<Dialect, string>;

const native = { claude: "messages", gpt: "responses", gemini: "chat" } satisfies Record<keyof typeof askedIn, Dialect>;

/** Every model is also reached through the packages of the other dialects. */
function spoken(attempt: Attempt, dialect: Dialect): Attempt {
  return {
    ...attempt,
    changed(text) {
      const settings = JSON.parse(text);
      settings.provider.dragoman.models[attempt.model.id].provider = { npm: packages[dialect] };
      return JSON.stringify(settings);
    },
  };
}

/** Codex is connected to use a WebSocket. */
const overSocket = (attempt: Attempt): Attempt => ({ ...attempt, socket: "kept" });
const overHttp = (attempt: Attempt): Attempt => ({
  ...attempt,
  changed: (text) => text.replace(/^supports_websockets = true\n/m, ""),
});

const only = process.argv.slice(2);
const isWanted = ({ id }: Tool) => only.length === 0 || only.includes(id);

const all: Attempt[] = [
  ...onEachModel(claudeCode, "messages"),
  ...onEachModel(claudeCode, "messages").map(searching),
  ...onEachModel(codex, "responses").map((attempt) => searching(overHttp(attempt))),
  ...onEachModel(codex, "responses").flatMap((attempt) => [overSocket(attempt), overHttp(attempt)]),
  { ...on(codex, "responses", "gpt"), socket: "dropped" },
  ...(Object.keys(packages) as Dialect[]).flatMap((dialect) =>
    names.map((name) => {
      const attempt = on(opencode, dialect, name);
      return native[name] === dialect ? attempt : spoken(attempt, dialect);
    }),
  ),
  ...onEachModel(geminiCli, "gemini"),
  ...[copilotCli, pi].flatMap((tool) => names.map((name) => on(tool, native[name], name))),
  // Continue 1.5 uses Responses for a GPT only if it knows the name, and chat for any other.
  ...names.map((name) => on(continueCli, name === "gpt" ? "chat" : native[name], name)),
  on(qwenCode, "messages", "claude"),
  on(qwenCode, "chat", "gpt"),
  on(qwenCode, "chat", "gemini"),
  withKey(on(claudeCode, "messages", "claude")),
  withKey(overSocket(on(codex, "responses", "gpt"))),
  withKey(on(opencode, "messages", "claude")),
  withKey(on(geminiCli, "gemini", "gemini")),
  withKey(on(copilotCli, "messages", "claude")),
  withKey(on(qwenCode, "chat", "gpt")),
  withKey(on(pi, "chat", "gemini")),
  settled(on(claudeCode, "messages", "claude")),
  settled(overSocket(on(codex, "responses", "gpt"))),
  settled(on(opencode, "messages", "claude")),
  settled(on(geminiCli, "gemini", "claude")),
  settled(on(qwenCode, "messages", "claude")),
  settled(on(pi, "responses", "gpt")),
];
const attempts = all.filter(({ tool }) => isWanted(tool));
if (attempts.length === 0)
  throw new Error(
    `Known clients: ${Object.values(tools)
      .map(({ id }) => id)
      .join(", ")}.`,
  );

process.on("SIGINT", () => {
  endAll();
  process.exit(130);
});

const wanted = Object.values(tools)
  .filter(isWanted)
  .map(({ npm }) => npm);
const installed = await install(wanted);
const versions = new Map(await Promise.all(wanted.map(async (npm) => [npm, await installed.version(npm)] as const)));
const collected = new Collected(new Date().toISOString().slice(0, 10));
const collect = ({ id, npm }: Tool, feature: Feature, isOk: boolean, family?: Family) =>
  collected.add(id, versions.get(npm)!, feature, isOk, family);
const widths = [26, 24, 22, 9, 8];
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
    const { tool, model, client_dialect, upstream_dialect, key, settled, socket, searches } = attempts[told++]!;
    line(
      `${clientOf(tool.id).name} ${versions.get(tool.npm)}`,
      model.id,
      `${client_dialect} → ${upstream_dialect}`,
      String(outcome.requests),
      outcome.seconds.toFixed(1),
      `${outcome.faults.length === 0 ? "ok" : `FAILED: ${outcome.faults.join("; ")}`}${key === undefined ? "" : " (with a client key)"}${searches ? " (searching the web)" : ""}${settled ? " (among settings of their own)" : ""}${socket ? ` (over a WebSocket${socket === "dropped" ? " that is dropped" : ""})` : ""}`,
    );
    const isOk = outcome.faults.length === 0;
    const family = names.find((name) => models[name] === model)!;
    collect(tool, searches ? "search" : key !== undefined ? "key" : settled ? "undo" : family, isOk);
    if (isOk) continue;
    failed++;
    console.log(lastLines(outcome.said, 30));
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
let tried = attempts.length;
/** @param more Behind the outcome. @param isNew Whether a failure counts. */
function report({ id, npm }: Tool, cells: string[], faults: string[], said: string, more = "", isNew = true): void {
  tried++;
  const outcome = `${faults.length === 0 ? "ok" : `FAILED: ${faults.join("; ")}`}${more && ` (${more})`}`;
  line(`${clientOf(id).name} ${versions.get(npm)}`, ...cells, outcome);
  if (faults.length === 0 || !isNew) return;
  failed++;
  console.log(lastLines(said, 30));
}
for await (const { tool, model, name, seconds, said } of tellings(installed, isWanted)) {
  const faults = seconds === undefined ? ["its person was not told"] : [];
  report(tool, [models[model].id, "refused", "", seconds?.toFixed(1) ?? ""], faults, said, name);
  collect(tool, "told", seconds !== undefined);
}
for await (const { tool, account, model, seconds, faults, said } of autoOutcomes(installed, isWanted)) {
  report(tool, [model, `on ${account}`, "", seconds.toFixed(1)], faults, said);
  collect(tool, "auto", faults.length === 0);
}
for await (const { tool, model, family, name, feature, faults, measured, said } of strengths(installed, isWanted)) {
  collect(tool, feature, faults.length === 0, family);
  const isNew = collected.isNew(tool.id, feature, family);
  report(tool, [model, name, "", ""], faults, said, faults.length === 0 ? measured : "", isNew);
}
for await (const { tool, name, faults, measured, said } of sessions(installed, isWanted))
  report(tool, ["", name, "", ""], faults, said, faults.length === 0 ? measured : "");
// A client that was updated may have changed what it needs: CI shows that beside the run.
for (const difference of collected.write())
  console.log(process.env.GITHUB_ACTIONS ? `::warning::${difference}` : difference);
console.log(`${tried - failed} passed, ${failed} failed`);
process.exitCode = failed === 0 ? 0 : 1;
