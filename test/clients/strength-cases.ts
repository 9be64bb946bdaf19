/**
 * Real clients at full strength: what `connect` turns on is on, and makes their requests smaller.
 * `bun test/clients/strength-cases.ts [client …]` runs these alone.
 */
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { countTokens } from "gpt-tokenizer";
import { models } from "../../src/deploy/documents/client-settings";
import type { Family, Feature } from "../../src/deploy/documents/works-with";
import { eventStream } from "../support/event-stream";
import { type RunningProxy, startProxy } from "../support/proxy";
import { abilitiesOf } from "./ability-cases";
import { runAlone } from "./alone";
import { offeredBy, type Tool, task, tools } from "./clients";
import type { Installed } from "./install";
import { meet, type Seen } from "./meet";
import { rewrites } from "./rewrite-cases";
import { type Sent, startWitness } from "./witness";

export interface Strength {
  tool: Tool;
  model: string;
  family?: Family;
  /** What was looked at. */
  name: string;
  /** The column of the table that it belongs to. */
  feature: Feature;
  faults: string[];
  /** A measurement, as a sentence. */
  measured?: string;
  said: string;
}

/** Milliseconds. */
const within = 90_000;
const mcpTools = 120;

const manyTools = JSON.stringify({
  mcpServers: {
    warehouse: { command: process.execPath, args: [join(import.meta.dir, "many-tools.ts"), String(mcpTools)] },
  },
});

export async function* strengths(installed: Installed, isWanted: (tool: Tool) => boolean): AsyncGenerator<Strength> {
  if (isWanted(tools.claudeCode)) {
    for (const id of ["claude-sonnet-4.6", "gpt-5.4", "gemini-3.8-flash"]) yield await searchesTools(id, installed);
    yield await listsModels(installed);
    const twice = { task: "call Read twice in parallel" };
    yield await callsInParallel(tools.claudeCode, twice, /"type":"tool_result"/g, installed);
    yield await worksUnasked(installed);
  }
  if (isWanted(tools.codex)) {
    for (const id of ["gpt-5.4", "claude-sonnet-4.6", "gemini-3.8-flash"]) yield await knowsModel(id, installed);
    yield await compacts(installed);
    const twice = { task: "call exec_command twice in parallel", args: codexOptions() };
    yield await callsInParallel(tools.codex, twice, /"type":"function_call_output"/g, installed);
    for (const outcome of ["allow", "deny"] as const) yield await reviews(outcome, installed);
  }
  yield* abilitiesOf(installed, isWanted);
  yield* rewrites(installed, isWanted);
}

/** Options of Codex for one run. A witness takes no WebSocket. */
const codexOptions = (...options: string[]) =>
  ["model_providers.dragoman.supports_websockets=false", ...options].flatMap((option) => ["-c", option]);

/** With the list of its models Codex knows them, and sends less. */
async function knowsModel(model: string, installed: Installed): Promise<Strength> {
  const tool = tools.codex;
  const connected = await visit({ tool, model, args: codexOptions() }, installed);
  const off = codexOptions("features.api_key_model_discovery=false");
  const without = await visit({ tool, model, args: off }, installed);
  const faults: string[] = [];
  const [listed, ...more] = connected.sent.filter(({ path }) => path.startsWith("/v1/models?client_version="));
  if (listed?.status !== 200 || more.length > 1) faults.push(`it asked for the list ${more.length + 1} times`);
  if (/(?:fallback model metadata|Model metadata for)/.test(connected.said)) faults.push("it does not know the model");
  if (connected.first.bytes * 1.5 > without.first.bytes) faults.push("its request is not smaller");
  if (connected.ended === undefined) faults.push("it did not end");
  if (connected.sent.some(({ status }) => status !== 200)) faults.push("a request failed");
  return {
    ...{ tool, model, name: "model list", feature: "model_list" as const, faults, said: connected.said },
    measured: `first request: ${amount(without)} without the list, ${amount(connected)} as connected`,
  };
}

/** The server makes the summary, and the conversation goes on with it. The demo forgets its task then, so the run is ended. */
async function compacts(installed: Installed): Promise<Strength> {
  const tool = tools.codex;
  const args = codexOptions("model_auto_compact_token_limit=1000");
  const { sent, said } = await visit({ tool, model: models.gpt.id, args, timeoutMs: 12_000 }, installed);
  const asked = sent.findIndex(({ body }) => body.includes('"compaction_trigger"'));
  const faults: string[] = [];
  if (asked < 0) faults.push("it did not ask for a summary");
  if (asked >= 0 && sent[asked]!.status !== 200) faults.push(`its request ended with ${sent[asked]!.status}`);
  if (asked >= 0 && !sent.slice(asked + 1).some(({ body }) => body.includes('"type":"compaction"')))
    faults.push("the summary is not in the next request");
  return { tool, model: "", name: "compaction by the server", feature: "compaction", faults, said };
}

/** A command that leaves the sandbox is shown to the reviewer, which is a small model, and runs only if that allows it. */
async function reviews(outcome: "allow" | "deny", installed: Installed): Promise<Strength> {
  const tool = tools.codex;
  const folder = mkdtempSync(join(tmpdir(), "dragoman-review-"));
  const marker = join(folder, "ran");
  const wish = { cmd: `touch ${marker}`, sandbox_permissions: "require_escalated", justification: "It is wanted." };
  const call = { type: "function_call", call_id: "call_1", name: "exec_command", arguments: JSON.stringify(wish) };
  const verdict = JSON.stringify({ risk_level: "low", user_authorization: "high", outcome, rationale: "It is so." });
  const content = [{ type: "output_text", text: verdict, annotations: [] }];
  const prepare = ({ demo }: RunningProxy) => {
    const answer = ({ body }: { body: unknown }) => {
      const asked = JSON.stringify(body);
      if (asked.includes('"codex_output_schema"')) return streamed({ type: "message", role: "assistant", content });
      return asked.includes('"function_call_output"') ? undefined : streamed(call);
    };
    demo.intercept("/responses", answer, 50);
  };
  const commands = () => [["codex", "exec", "--skip-git-repo-check", "--approve-for-me", ...codexOptions(), "do it"]];
  const { said, sent } = await visit({ tool, model: models.gpt.id, commands, prepare }, installed);
  const faults: string[] = [];
  const asked = sent.filter(({ body }) => body.includes('"model":"codex-auto-review"'));
  if (asked.length !== 1) faults.push(`${asked.length} reviews were asked for`);
  if (existsSync(marker) !== (outcome === "allow")) faults.push(outcome === "allow" ? "it did not run" : "it ran");
  if (sent.some(({ status }) => status !== 200)) faults.push("a request failed");
  rmSync(folder, { recursive: true });
  const measured = `a review is ${asked[0]?.body.length} bytes`;
  return { tool, model: "", name: `codex-auto-review says ${outcome}`, feature: "auto_mode", faults, measured, said };
}

/** A reply of one item, in the responses dialect. */
function streamed(content: object): Response {
  const item = { id: "item_1", status: "completed", ...content };
  const usage = { input_tokens: 10, output_tokens: 5, total_tokens: 15 };
  const response = { id: "resp_1", object: "response", status: "completed", output: [item], usage };
  const events = [
    { type: "response.created", response: { ...response, status: "in_progress", output: [] } },
    { type: "response.output_item.done", output_index: 0, item },
    { type: "response.completed", response },
  ];
  const lines = events.map((event, at) => `data: ${JSON.stringify({ ...event, sequence_number: at })}\n\n`);
  return eventStream(lines.join(""));
}

const amount = ({ first: { bytes, tokens } }: Visit) => `${bytes} bytes, about ${tokens} tokens`;

/** Two calls of one reply come back with two results in one request. */
async function callsInParallel(
  tool: Tool,
  asked: Partial<Asked>,
  result: RegExp,
  installed: Installed,
): Promise<Strength> {
  const faults: string[] = [];
  let said = "";
  for (const model of ["claude-sonnet-4.6", "gpt-5.4", "gemini-3.8-flash"]) {
    const visited = await visit({ tool, model, ...asked }, installed);
    said += visited.said;
    const results = visited.sent.map(({ body }) => body.match(result)?.length ?? 0);
    if (Math.max(...results) < 2) faults.push(`${model}: at most ${Math.max(...results)} results came back`);
  }
  return { tool, model: "", name: "parallel tools", feature: "parallel", faults, said };
}

interface Visit extends Seen {
  sent: Sent[];
  /** The first request for a reply: bytes, and tokens of the local vocabulary. */
  first: { body: Record<string, unknown> & { tools?: { name: string }[] }; bytes: number; tokens: number };
}

interface Asked {
  tool: Tool;
  model: string;
  task?: string;
  args?: string[];
  commands?(): string[][];
  env?: Record<string, string>;
  atHome?(home: string): Promise<void>;
  timeoutMs?: number;
  /** Prepares the upstream. */
  prepare?(proxy: RunningProxy): void;
}

/** A client at the newest upstream, with a witness before dragoman. */
async function visit({ model: id, prepare, ...asked }: Asked, installed: Installed): Promise<Visit> {
  await using proxy = await startProxy({ demo: { generation: "C" } });
  prepare?.(proxy);
  using witness = startWitness(proxy.url);
  const offered = await offeredBy(proxy.url);
  const model = offered.find((each) => each.id === id)!;
  const meeting = { task, timeoutMs: within, ...asked, model, offered, url: witness.url, words: /$^/ };
  const seen = await meet(meeting, installed);
  const first = witness.sent.find(({ method, path }) => method === "POST" && !path.includes("count_tokens"));
  const body = JSON.parse(first?.body ?? "{}");
  return { ...seen, sent: witness.sent, first: { body, bytes: first?.body.length ?? 0, tokens: await tokensOf(body) } };
}

/** Without an upstream: one that refuses a request counts nothing. */
const tokensOf = async ({ tools: offered = [], messages, system, input }: Visit["first"]["body"]) =>
  countTokens(JSON.stringify([offered, messages, system, input]));

const mcp = ["--strict-mcp-config", "--mcp-config", manyTools];

/** The tools of an MCP server are not sent, and with them all the request would be refused or much larger. */
async function searchesTools(model: string, installed: Installed): Promise<Strength> {
  const tool = tools.claudeCode;
  const connected = await visit({ tool, model, args: mcp }, installed);
  const off = ["--settings", JSON.stringify({ env: { ENABLE_TOOL_SEARCH: "false" } })];
  const without = await visit({ tool, model, args: [...mcp, ...off] }, installed);
  const sentTools = ({ first }: Visit) =>
    (first.body.tools ?? []).filter(({ name }) => name.startsWith("mcp__")).length;
  const faults: string[] = [];
  if (sentTools(without) !== mcpTools) faults.push(`without tool search ${sentTools(without)} of its tools were sent`);
  if (sentTools(connected) !== 0) faults.push(`${sentTools(connected)} tools were sent`);
  if (connected.ended === undefined) faults.push("it did not end");
  const hints = connected.sent.filter(({ headers }) => headers.has("x-claude-code-request-class"));
  const asked = connected.sent.filter(({ path }) => path.startsWith("/v1/messages?"));
  if (asked.length === 0 || hints.length !== asked.length) faults.push(`${hints.length} requests had hint headers`);
  return {
    ...{ tool, model, name: `${mcpTools} MCP tools`, feature: "tool_search" as const, faults, said: connected.said },
    measured: `first request: ${amount(without)} with all tools, ${amount(connected)} as connected`,
  };
}

/** All chat models come to its own list. */
async function listsModels(installed: Installed): Promise<Strength> {
  const tool = tools.claudeCode;
  let kept: string[] = [];
  const atHome = async (home: string) => {
    const file = Bun.file(join(home, ".claude", "cache", "gateway-models.json"));
    const { models: listed = [] } = (await file.json().catch(() => ({}))) as {
      models?: { id: string; description?: string }[];
    };
    kept = listed.filter(({ description }) => description).map(({ id }) => id);
  };
  const { said, sent } = await visit({ tool, model: "claude-sonnet-4.6", atHome }, installed);
  const faults = ["claude-opus-5-5", "gpt-6-sol:claude", "gemini-3.8-flash:claude"]
    .filter((id) => !kept.includes(id))
    .map((id) => `${id} is not in its list`);
  if (!sent.some(({ path }) => path === "/v1/models?limit=1000")) faults.push("it did not ask for the list");
  return {
    tool,
    model: "",
    name: "model list",
    feature: "model_list",
    faults,
    measured: `${kept.length} models`,
    said,
  };
}

/** A command in auto mode runs unasked once Claude Code's own check allows it, and no notice says that it cannot check. */
async function worksUnasked(installed: Installed): Promise<Strength> {
  const tool = tools.claudeCode;
  const allowed = { ...scriptedMessage, content: [{ type: "text", text: "<block>no</block>" }] };
  const prepare = ({ demo }: RunningProxy) =>
    demo.intercept(
      "/v1/messages",
      ({ body }) => (JSON.stringify(body).includes("<block>") ? Response.json(allowed) : undefined),
      50,
    );
  const args = ["--permission-mode", "auto", "--output-format", "stream-json", "--verbose"];
  const wish = { tool, model: "claude-sonnet-4.6", task: "use the tool Bash", args, prepare };
  const { said, sent } = await visit(wish, installed);
  const faults: string[] = [];
  // The scripted command is `ls`, and the folder is empty.
  if (!said.includes("(Bash completed with no output)")) faults.push("it did not run");
  if (/"level":"warning"/.test(said)) faults.push("there is a notice");
  if (sent.some(({ status }) => status !== 200)) faults.push("a request failed");
  const bytes = sent.reduce((sum, { body }) => sum + body.length, 0);
  return {
    tool,
    model: "",
    name: "auto mode",
    feature: "auto_mode",
    faults,
    measured: `${sent.length} requests, ${bytes} bytes`,
    said,
  };
}

const scriptedMessage = {
  ...{ id: "msg_1", type: "message", role: "assistant", model: "claude-sonnet-4.6", stop_reason: "end_turn" },
  ...{ stop_sequence: null, usage: { input_tokens: 10, output_tokens: 5 } },
};

if (import.meta.main)
  await runAlone([tools.claudeCode, tools.codex], strengths, ({ model, name }) => `${model}, ${name}`);
