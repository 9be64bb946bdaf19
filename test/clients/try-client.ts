/**
 * One client, one model, one task: `dragoman connect --write` in a home and a work folder that nothing else uses, the
 * real client in front of the demo, and `--undo`.
 */
import { existsSync, mkdirSync } from "node:fs";
import { dirname, join } from "node:path";
import { clientOf } from "../../src/clients/index";
import { chooseModels } from "../../src/clients/models";
import { type Demo, startDemo } from "../../src/demo/demo";
import { models } from "../../src/deploy/documents/client-settings";
import type { ClientDialect, Dialect } from "../../src/dialects/hub/conversation";
import { type Command, program, run } from "../support/command";
import { faultsOfTask, printedFiles, type Tool, task, variablesOf } from "./clients";
import { startDropping } from "./dropped";
import type { Installed } from "./install";

/** Milliseconds. */
const within = 120_000;
/** A title, the turn and the tool's result; a client that asks more often repeats itself. */
const maxRequests = 3;

export interface Attempt {
  tool: Tool;
  model: (typeof models)[keyof typeof models];
  /** What the client speaks, and what the model is asked in. */
  client_dialect: ClientDialect;
  upstream_dialect: Dialect;
  /** The client key that dragoman asks for, if it asks for one. */
  key?: string;
  /** The person has settings already. */
  settled?: boolean;
  /** Changes what was written, to try what the client can do besides. */
  changed?(text: string): string;
  /** Its task is a web search. */
  searches?: true;
  /** Its requests come over a WebSocket and continue one another; with `dropped`, the first connection breaks on the way. */
  socket?: "kept" | "dropped";
}

export interface Outcome {
  requests: number;
  seconds: number;
  /** What went wrong; nothing, when all is well. */
  faults: string[];
  /** What the client and the proxy said. */
  said: string;
}

interface Row {
  client_model: string;
  client_dialect: string;
  upstream_dialect: string | null;
  http_status: number;
  initiator: string | null;
  error_type: string | null;
  path: string;
  searches: number | null;
  parent_id: string | null;
  fixups: string[];
}

const running = new Set<number>();

/** Ends the clients that are still at it. */
export function endAll(): void {
  for (const pid of running) endGroup(pid);
}

export async function tryOut(attempt: Attempt, installed: Installed): Promise<Outcome> {
  const { tool, model, key, settled, changed, socket, searches } = attempt;
  const more = searches ? tool.searching : undefined;
  // The newest generation, which refuses what the upstream refuses today.
  await using demo = stoppable(startDemo({ generation: "C" }));
  await using proxy = run(["start", "--json", "--port", "0"], {
    env: {
      DRAGOMAN_GITHUB_URL: demo.url,
      DRAGOMAN_GITHUB_API_URL: demo.url,
      DRAGOMAN_COPILOT_API_URL: demo.url,
      DRAGOMAN_GITHUB_TOKEN: demo.accounts[0]!.githubToken,
      ...(key === undefined ? {} : { DRAGOMAN_API_KEY: key }),
    },
  });
  const { url } = await proxy.ready();
  const home = join(proxy.home, "home");
  const work = join(proxy.home, "work");
  for (const folder of [home, work]) mkdirSync(folder);
  const path = clientOf(tool.id).file?.locate({ home, env: {} });
  if (settled && path && tool.settings !== undefined) {
    mkdirSync(dirname(path), { recursive: true });
    await Bun.write(path, tool.settings);
  }

  const action = path ? ["--write"] : [];
  const connecting = await connect(proxy, home, [tool.id, ...action, "--model", model.id], key);
  if (connecting.code !== 0)
    return { requests: 0, seconds: 0, faults: [`connect ended with ${connecting.code}`], said: connecting.said };
  const { size: asked } = await rowsOf(url);
  if (changed && path) await Bun.write(path, changed(await Bun.file(path).text()));
  // The warm-up ends, then the turn.
  await using dropping =
    socket === "dropped" ? await startDropping(url, /(?:"response\.completed"[\s\S]*){2}/) : undefined;
  if (dropping && path) await Bun.write(path, (await Bun.file(path).text()).replaceAll(url, dropping.url));

  const setup = clientOf(tool.id).setUp({ url, key, models: chooseModels(Object.values(models))!, model });
  const printed = printedFiles(setup, home);
  for (const { path: place, text } of printed) await Bun.write(place, text);
  const startedAt = performance.now();
  const [name = "", ...args] = tool.command(searches ? searchTask : task, model);
  const options = [...tool.quiet.args, ...(more?.args ?? [])];
  const child = Bun.spawn([installed.program(name), ...args.slice(0, -1), ...options, ...args.slice(-1)], {
    cwd: work,
    env: { PATH: process.env.PATH, HOME: home, ...variablesOf(setup), ...tool.quiet.env, ...more?.env },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
    detached: true,
  });
  running.add(child.pid);
  let late = false;
  const timer = setTimeout(() => {
    late = true;
    endGroup(child.pid);
  }, within);
  const [out, err, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
  clearTimeout(timer);
  running.delete(child.pid);
  const seconds = (performance.now() - startedAt) / 1000;

  const { newest } = await rowsOf(url);
  const rows = newest(asked);
  const faults = late ? [`it was not done after ${within / 1000} s`] : code === 0 ? [] : [`it ended with ${code}`];
  const undone = searches ? faultsOfSearch(rows, attempt) : await faultsOfTask(work);
  faults.push(...undone, ...faultsOf(rows, attempt));
  if (dropping && dropping.drops !== 1) faults.push("its connection was not dropped");

  // A client without a file of ours has its settings from what was printed.
  const expected = [
    ...Object.keys(setup.variables).map((name) => `export ${name}=`),
    ...printed.map(({ text }) => text.trimEnd()),
  ];
  if (!path && expected.some((part) => !connecting.said.includes(part))) faults.push("its settings were not printed");
  const undoing = path
    ? await connect(proxy, home, [tool.id, "--undo", ...(changed || dropping ? ["--force"] : [])], key)
    : undefined;
  const after = path && existsSync(path) ? await Bun.file(path).text() : undefined;
  if ((undoing && undoing.code !== 0) || after !== (settled ? tool.settings : undefined))
    faults.push("it was not taken back");
  const said = [out, err, proxy.stderr(), connecting.said, undoing?.said].join("\n");
  return { requests: rows.length, seconds, faults, said };
}

const stoppable = (demo: Demo) => Object.assign(demo, { [Symbol.asyncDispose]: () => demo.stop() });

const searchTask = "Search the web for red pandas";

/** A model that searches by itself leaves no row of a search. */
function faultsOfSearch(rows: Row[], { client_dialect, upstream_dialect }: Attempt): string[] {
  if (client_dialect === "responses" && upstream_dialect === "responses") return [];
  const searches = rows.filter(({ path }) => path === "web_search");
  const counted = rows.reduce((sum, row) => sum + (row.searches ?? 0), 0);
  return searches.length === 1 && counted === 1 ? [] : [`${searches.length} searches were made, ${counted} counted`];
}

async function connect({ home: folder }: Command, home: string, args: string[], key: string | undefined) {
  const env = { PATH: process.env.PATH ?? "", HOME: home, DRAGOMAN_HOME: join(folder, "data") };
  const child = Bun.spawn([...program, "connect", ...args], {
    cwd: folder,
    env: { ...env, ...(key !== undefined && { DRAGOMAN_API_KEY: key }) },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
    timeout: 30_000,
  });
  const [out, err, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
  return { code, said: `${out}\n${err}` };
}

function faultsOf(rows: Row[], { model, client_dialect, upstream_dialect, socket, searches }: Attempt): string[] {
  const faults: string[] = [];
  // Claude Code is given the ids as Anthropic writes them.
  const dashed = (id: string) => id.replaceAll(".", "-");
  const asked = rows.filter((row) => dashed(row.client_model) === dashed(model.id) && row.parent_id === null);
  const bad = rows.filter((row) => row.http_status !== 200 || row.error_type !== null);
  if (asked.length === 0) faults.push("the model was not asked");
  if (bad.length > 0)
    faults.push(bad.map((row) => `a request ended with ${row.http_status} ${row.error_type}`).join(", "));
  const wrong = asked.find((row) => row.client_dialect !== client_dialect || row.upstream_dialect !== upstream_dialect);
  if (wrong) faults.push(`it went from ${wrong.client_dialect} to ${wrong.upstream_dialect}`);
  // A search of Codex runs within the turn.
  if (!rows.some((row) => row.initiator === "agent") && !(searches && upstream_dialect === "responses"))
    faults.push("no tool's result came back");
  const overSocket = rows.filter(({ path }) => path.startsWith("ws:"));
  if (overSocket.length !== (socket ? rows.length : 0))
    faults.push(`${overSocket.length} requests came over a WebSocket`);
  // The warm-up is continued by the turn, and the turn by the result.
  const continued = overSocket.filter(({ fixups }) => fixups.includes("continued")).length;
  if (socket && continued !== (socket === "kept" ? 2 : 1)) faults.push(`${continued} requests had only the new items`);
  if (rows.length > maxRequests + (searches ? 1 : 0)) faults.push(`${rows.length} requests were made`);
  return faults;
}

/** The whole history, once it no longer grows. */
async function rowsOf(url: string): Promise<{ size: number; newest(after: number): Row[] }> {
  let rows: Row[] = [];
  for (let tries = 0; tries < 20; tries++) {
    const before = rows.length;
    const page = (await (await fetch(`${url}/api/admin/requests?limit=200`)).json()) as { items: Row[] };
    rows = page.items;
    if (rows.length > 0 && rows.length === before) break;
    await Bun.sleep(250);
  }
  return { size: rows.length, newest: (after) => rows.slice(0, rows.length - after) };
}

function endGroup(pid: number): void {
  try {
    process.kill(-pid, "SIGKILL");
  } catch {
    // It has ended by itself.
  }
}
