/**
 * A whole session of a real client, and what dragoman says of it: what each prompt was made of, what broke its cache, what it cost,
 * and what would have cost less. The upstream counts and bills by a measure of its own, and the sums are made of that here again.
 * `bun test/clients/session-cases.ts [client …]` runs these alone.
 */
import { join } from "node:path";
import { models } from "../../src/deploy/documents/client-settings";
import { formatAmount } from "../../src/lib/format";
import { namedEvent } from "../support/event-stream";
import { runAlone } from "./alone";
import {
  type Ask,
  canary,
  checkAdvice,
  checkBreaks,
  checkCanary,
  checkSums,
  type Session,
  startSession,
  sumOf,
  type Tell,
} from "./client-session";
import { type Tool, tools } from "./clients";
import { type Billed, priceOf } from "./counted-upstream";
import type { Installed } from "./install";

const minuteMs = 60_000;
const mcpTools = 120;

const mcpServers = (counts: Record<string, number>) => [
  "--strict-mcp-config",
  "--mcp-config",
  JSON.stringify({
    mcpServers: Object.fromEntries(
      Object.entries(counts).map(([name, count]) => [
        name,
        { command: process.execPath, args: [join(import.meta.dir, "many-tools.ts"), String(count), "1200"] },
      ]),
    ),
  }),
];

const filler = (at: number, lines: number) =>
  Array.from(
    { length: lines },
    (_, line) => `Record ${line} of report ${at}: its owner has changed the state, and every field is complete.\n`,
  ).join("");

/** In place of the demo's script: three long tasks for subagents, of which none has a beginning in common with another. */
function threeAgents(asked: string, usageOf: () => object): string | undefined {
  if (!asked.includes("start three agents") || /"type":"tool_result"|security monitor|CRITICAL/.test(asked))
    return undefined;
  const calls = [1, 2, 3].map((at) => ({
    ...{ type: "tool_use", id: `toolu_agent_${at}`, name: "Agent" },
    input: { description: `Read report ${at}`, prompt: filler(at, 5_000), subagent_type: "general-purpose" },
  }));
  const usage = usageOf();
  const message = { ...{ id: "msg_1", type: "message", role: "assistant", model: "claude", content: [], usage } };
  return [
    { type: "message_start", message },
    ...calls.flatMap((call, index) => [
      { type: "content_block_start", index, content_block: { ...call, input: {} } },
      {
        ...{ type: "content_block_delta", index },
        delta: { type: "input_json_delta", partial_json: JSON.stringify(call.input) },
      },
      { type: "content_block_stop", index },
    ]),
    { type: "message_delta", delta: { stop_reason: "tool_use", stop_sequence: null }, usage, copilot_usage: {} },
    { type: "message_stop" },
  ]
    .map(namedEvent)
    .join("");
}

/** 120 MCP tools that are never called, three dear subagents, three breaks of the cache, auto mode, Ctrl-C and a compaction. */
async function wasteful(installed: Installed, tell: Tell): Promise<Session> {
  const clock = { ahead: 0 };
  const session = await startSession(tools.claudeCode, models.opus, installed, clock, threeAgents);
  await using proxy = session.proxy;
  const all = ["--settings", JSON.stringify({ env: { ENABLE_TOOL_SEARCH: "false" } })];
  const mode = ["--tools=Agent,Bash,Read", "--permission-mode=auto", "--system-prompt-snapshot=off"];
  const base = [...mode, ...all, ...mcpServers({ warehouse: mcpTools })];
  const ask = (text: string, args = base, more: Ask = {}) =>
    session.ask(["claude", "-p", `${text} ${canary}`], { ...more, args: [...args, "--continue"] });
  await session.ask(["claude", "-p", `hello ${canary}`], { args: base });
  await ask("start three agents");
  await ask("hello", [...mode, ...all, ...mcpServers({ warehouse: mcpTools, playwright: 1 })]);
  await ask("hello");
  const brief = [...base, "--append-system-prompt", "You answer in one line."];
  await ask("hello", brief);
  clock.ahead += 7 * minuteMs;
  await ask("hello", brief);
  const outside = join(proxy.home, "work-outside.txt");
  await ask(`write a file ${outside} with the text Hi there`, brief);
  const silent = () =>
    proxy.demo.journal.some(
      ({ status, bytes }) => status === 200 && new TextDecoder().decode(bytes).includes("silence 60"),
    );
  await ask("[demo: silence 60] say hello", brief, { interrupts: silent });
  await session.ask(["claude", "-p", "/compact"], { args: [...brief, "--continue"] });
  await ask("thanks", brief);

  const rows = proxy.rows();
  const kinds = Object.fromEntries([...Map.groupBy(rows, ({ kind }) => kind)].map(([kind, of]) => [kind, of.length]));
  if (!(kinds.subagent! >= 3 && kinds.check! >= 1 && kinds.compaction! >= 1)) tell(`it sent ${JSON.stringify(kinds)}`);
  if (!rows.some(({ http_status }) => http_status === 499)) tell("no turn was interrupted");
  await checkSums(session, tell);
  await checkBreaks(
    session,
    [{ reason: "tools", change: '{"added":["mcp__playwright"]}' }, { reason: "system" }, { reason: "expired" }],
    tell,
  );
  await checkAdvice(session, await wasteOf(session), tell);
  await checkCanary(session, tell);
  return session;
}

interface ListedPrices {
  input_price: string;
  output_price: string;
  cache_read_price: string;
  cache_write_price: string;
  max_prompt_tokens?: number;
}

interface PriceList {
  data: { id: string; billing: { token_prices: Record<"default" | "long_context", ListedPrices> } }[];
}

/** What the planted waste came to, by the upstream's own count and list. */
async function wasteOf({ billed, proxy }: Session): Promise<Record<string, number>> {
  const prices = proxy.demo.pricesOf(models.opus.id);
  const unused = billed.flatMap(({ model, tools: sent, cached, written }) => {
    let at = 0;
    return [...sent].map(([name, tokens]) => {
      const start = at;
      at += tokens;
      if (!name.startsWith("mcp__") || model !== models.opus.id) return 0;
      const within = (from: number, to: number) => Math.max(0, Math.min(at, to) - Math.max(start, from));
      const own = { cached: within(0, cached), written: within(cached, cached + written), output: 0 };
      return priceOf(prices, { input: tokens, ...own });
    });
  });
  const { headers } = proxy.demo.journal.findLast(({ path }) => path === "/models")!;
  const list = (await (await fetch(`${proxy.demo.url}/models`, { headers })).json()) as PriceList;
  const { default: usual, long_context: long } = list.data.find(({ id }) => id === models.haiku.id)!.billing
    .token_prices;
  const isCheck = ({ text }: Billed) => text.includes("You are a security monitor");
  const ofAgents = billed.filter((each) => !each.text.includes(canary) && !isCheck(each));
  const cheaper = ofAgents.map((each) => {
    const { input_price, output_price, cache_read_price, cache_write_price } =
      each.input > usual.max_prompt_tokens! ? long : usual;
    const [input, output] = [Number(input_price), Number(output_price)];
    return priceOf({ input, output, cacheRead: Number(cache_read_price), cacheWrite: Number(cache_write_price) }, each);
  });
  const costOf = (of: readonly Billed[]) => sumOf(of.map(({ cost }) => cost));
  return {
    unused_tools: sumOf(unused),
    subagents: costOf(ofAgents) - sumOf(cheaper),
    checks: costOf(billed.filter(isCheck)),
  };
}

/** As connected, with subagents on a small model: as dear, and nothing to advise. */
async function clean(installed: Installed, tell: Tell): Promise<Session> {
  const session = await startSession(tools.claudeCode, models.opus, installed, { ahead: 0 });
  await using _ = session.proxy;
  const base = mcpServers({ warehouse: mcpTools });
  const env = { CLAUDE_CODE_SUBAGENT_MODEL: models.haiku.id };
  await session.ask(["claude", "-p", `hello ${canary}`], { args: base, env, stdin: filler(1, 12_000) });
  await session.ask(["claude", "-p", `call Agent twice in parallel ${canary}`], { args: [...base, "--continue"], env });
  await session.ask(["claude", "-p", `thanks ${canary}`], { args: [...base, "--continue"], env });
  await checkSums(session, tell);
  await checkBreaks(session, [], tell);
  await checkAdvice(session, {}, tell);
  await checkCanary(session, tell);
  return session;
}

const server = (count: number) => [join(import.meta.dir, "many-tools.ts"), String(count), "600"];

/** Codex names its prompts and the servers of its tools. */
async function ofCodex(installed: Installed, tell: Tell): Promise<Session> {
  const clock = { ahead: 0 };
  const session = await startSession(tools.codex, models.gpt, installed, clock);
  await using _ = session.proxy;
  const servers = (counts: Record<string, number>) =>
    Object.entries(counts).flatMap(([name, count]) => [
      ...["-c", `mcp_servers.${name}.command=${JSON.stringify(process.execPath)}`],
      ...["-c", `mcp_servers.${name}.args=${JSON.stringify(server(count))}`],
    ]);
  const base = [...tools.codex.quiet.args, ...servers({ warehouse: mcpTools })];
  const ask = (command: string[], args = base) => {
    const [program = "", ...rest] = command;
    return session.ask([program, ...args, ...rest]);
  };
  await ask(tools.codex.command(`write a file hello.txt with the text ${canary}`, models.gpt));
  await ask(tools.codex.resumed!(`hello ${canary}`, models.gpt));
  clock.ahead += 7 * minuteMs;
  await ask(tools.codex.resumed!(`hello ${canary}`, models.gpt));
  await checkSums(session, tell);
  await checkBreaks(session, [{ reason: "expired" }], tell);
  await checkCanary(session, tell);
  return session;
}

/** opencode names neither. */
async function ofOpencode(installed: Installed, tell: Tell): Promise<Session> {
  const clock = { ahead: 0 };
  const session = await startSession(tools.opencode, models.claude, installed, clock);
  await using _ = session.proxy;
  const servers = (counts: Record<string, number>) => ({
    OPENCODE_CONFIG_CONTENT: JSON.stringify({
      mcp: Object.fromEntries(
        Object.entries(counts).map(([name, count]) => [
          name,
          { type: "local", command: [process.execPath, ...server(count)] },
        ]),
      ),
    }),
  });
  const ask = (command: string[], env = servers({ warehouse: 100 })) => session.ask(command, { env });
  await ask(tools.opencode.command(`write a file hello.txt with the text ${canary}`, models.claude));
  await ask(tools.opencode.resumed!(`hello ${canary}`, models.claude));
  await ask(tools.opencode.resumed!(`hello ${canary}`, models.claude), servers({ warehouse: 100, playwright: 1 }));
  clock.ahead += 7 * minuteMs;
  await ask(tools.opencode.resumed!(`hello ${canary}`, models.claude), servers({ warehouse: 100, playwright: 1 }));
  await checkSums(session, tell);
  await checkBreaks(
    session,
    [{ reason: "tools", change: '{"added":["playwright_read_record_0"]}' }, { reason: "expired" }],
    tell,
  );
  await checkCanary(session, tell);
  return session;
}

const cases = { claudeCode: { wasteful, clean }, codex: { whole: ofCodex }, opencode: { whole: ofOpencode } } as const;

interface SessionOutcome {
  tool: Tool;
  name: string;
  faults: string[];
  /** What it was, as a sentence. */
  measured?: string;
  said: string;
}

export async function* sessions(
  installed: Installed,
  isWanted: (tool: Tool) => boolean,
): AsyncGenerator<SessionOutcome> {
  for (const [id, ofTool] of Object.entries(cases)) {
    const tool = tools[id as keyof typeof cases];
    if (!isWanted(tool)) continue;
    for (const [name, run] of Object.entries(ofTool)) {
      const faults: string[] = [];
      let said = "";
      let measured: string | undefined;
      try {
        const session = await run(installed, (fault) => void faults.push(fault));
        said = session.said;
        measured = `${session.billed.length} requests, ${formatAmount(sumOf(session.billed.map(({ cost }) => cost)))} credits`;
      } catch (error) {
        faults.push(String(error));
      }
      yield { tool, name: `${name} session`, faults, measured, said };
    }
  }
}

if (import.meta.main) await runAlone([tools.claudeCode, tools.codex, tools.opencode], sessions, ({ name }) => name);
