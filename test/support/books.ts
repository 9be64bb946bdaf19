/**
 * The files of `fixtures/books/`: under a title how it starts, then steps, and under each step all that came of it: the answer,
 * and what changed in the books (rows, budgets, accounts, files, log). They are played, and compared as texts. `UPDATE=1`
 * writes them anew; `test/README.md` has the words of a step.
 */

import { Database } from "bun:sqlite";
import { readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { demoAccounts, quotas } from "../../src/demo/accounts";
import { parseJson } from "../../src/lib/json";
import { savedFrom } from "../people/accounts/bench";
import { milliseconds, testBlocks, withNames, wordsIn } from "./blocks";
import { fieldsIn } from "./form-fields";
import type { Json } from "./json";
import { pageText, partOf } from "./page-text";
import { ofNoRun } from "./page-worlds";
import { type RunningProxy, startProxy } from "./proxy";
import { until } from "./until";

/** The line with `:`. */
interface Setup {
  /** When it begins; `2026-11-11T12:00:00Z`. */
  at?: string;
  config?: object;
  /** Of GitHub, by the first word of their logins; `octo` alone. */
  accounts?: string[];
  /** More of GitHub, with which nobody is signed in. */
  others?: string[];
  quota?: keyof typeof quotas;
  env?: Record<string, string>;
  /** A receiver of notices, of which `$hook` is the address. */
  hook?: boolean;
}

const width = 128;

export const testBooks = (name: string) => testBlocks(`books/${name}.txt`, play);

/** @returns The block with what comes of its steps now. */
async function play(block: string): Promise<string> {
  const steps = block.split("\n").filter((line) => !line.startsWith("  "));
  const setup: Setup = JSON.parse(steps.find((line) => line.startsWith(": "))?.slice(2) ?? "{}");
  await using stage = await openStage(setup);
  const played: string[] = [];
  for (const step of steps) {
    played.push(step);
    if (/^[>!] /.test(step)) played.push(...(await stage.happen(step)).flatMap(indented));
  }
  return played.join("\n");
}

/** Folded between words, so that no line is wider than the page. */
function indented(text: string): string[] {
  return text.split("\n").flatMap((line) => {
    const lines = [""];
    for (const word of line.split(" "))
      if (lines.at(-1)!.length + word.length > width && lines.at(-1)!.trim() !== "") lines.push(`    ${word}`);
      else lines[lines.length - 1] += lines.at(-1) === "" ? word : ` ${word}`;
    return lines.map((each) => `  ${each}`);
  });
}

async function openStage(setup: Setup) {
  const { at = "2026-11-11T12:00:00Z", accounts = ["octo"], others = [], quota, env } = setup;
  const receiver = setup.hook ? startReceiver() : undefined;
  const put = (text: string) => text.replaceAll("$hook", () => `${receiver?.url}/hooks/secret-path`);
  const config = setup.config && JSON.parse(put(JSON.stringify(setup.config)));
  let [wall, monotonic] = [Date.parse(at), 1e6];
  const known = [...accounts, ...others].map((name) => {
    const account = demoAccounts().find(({ login }) => login === `${name}-demo`)!;
    return quota ? { ...account, quota: quotas[quota]() } : account;
  });
  const sleeping: (() => void)[] = [];
  const sleep = (_: number, signal?: AbortSignal) =>
    new Promise<void>((resolve, reject) => {
      sleeping.push(resolve);
      signal?.addEventListener("abort", () => reject(signal.reason));
    });
  const proxy = await startProxy({
    clock: { now: () => wall, monotonic: () => monotonic, random: () => 0.5, sleep },
    demo: { accounts: known, now: () => wall },
    saved: (demo) => demo.accounts.slice(0, accounts.length).map((account) => savedFrom(account, Date.parse(at))),
    config,
    env: { TZ: "UTC", ...env },
  });
  const books = new Books(proxy, receiver);
  await books.ask(["GET", "/api/admin/config"]);
  books.forget();

  /** A fault is told the second time. */
  const look = async () => {
    for (let time = 0; time < 2; time += 1) await proxy.app.config.reload();
  };
  const events: Record<string, (...words: Json[]) => unknown> = {
    pass: (time: string) => {
      wall += milliseconds(time);
      monotonic += milliseconds(time);
    },
    /** The wall clock alone is set. */
    leap: (time: string) => {
      wall += milliseconds(time);
    },
    edit: async (text: Json) => {
      writeFileSync(join(proxy.home, "config.json"), typeof text === "string" ? text : JSON.stringify(text));
      await look();
    },
    remove: async (file: string) => {
      rmSync(join(proxy.home, file));
      await look();
    },
    answer: (status: string, path: string, { times = 1, ...json }: Json = {}) =>
      proxy.demo.intercept(path, () => Response.json(json, { status: Number(status) }), times),
    quota: (name: string, changes: Json) =>
      Object.assign(proxy.demo.accounts.find(({ login }) => login === `${name}-demo`)!.quota.premium, changes),
    /** A sign-in asks GitHub whether the person has allowed it. */
    poll: async (outcome: "success" = "success") => {
      Object.assign(proxy.demo.device, { outcome });
      for (const wake of sleeping.splice(0)) wake();
      await until(() => sleeping.length > 0 || proxy.app.signIns.waiting(null).length === 0, "GitHub has answered");
    },
    /** Behind the back of the program. */
    sql: (file: string, text: string) => {
      using database = new Database(join(proxy.home, file));
      database.run(text);
    },
    account: (name: string, changes: Json) =>
      Object.assign(proxy.demo.accounts.find(({ login }) => login === `${name}-demo`)!, changes),
    expire: () => proxy.demo.expireTokens(),
    learn: () => Promise.all(proxy.app.accounts.map((account) => account.quota())),
    notices: () => proxy.app.notices.check(),
    /** What the receiver answers next. */
    hook: (...statuses: string[]) => receiver!.statuses.push(...statuses.map(Number)),
  };

  return {
    async happen(step: string): Promise<string[]> {
      const [asked, part] = put(step).split(" ~ ") as [string, string?];
      const words = wordsIn(asked.slice(2));
      if (step.startsWith("! ")) await events[words[0]]!(...words.slice(1));
      else await books.ask(words, part);
      return books.changed();
    },
    async [Symbol.asyncDispose]() {
      await proxy[Symbol.asyncDispose]();
      await receiver?.stop();
    },
  };
}

function startReceiver() {
  const [received, statuses] = [[] as string[], [] as number[]];
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    async fetch(request) {
      received.push(await request.text());
      return new Response("", { status: statuses.shift() ?? 204 });
    },
  });
  return { url: server.url.origin, received, statuses, stop: () => server.stop(true) };
}

/** What the proxy keeps, told by what changed since it was told last: by each name the members that have another value. */
class Books {
  readonly #proxy: RunningProxy;
  readonly #receiver: ReturnType<typeof startReceiver> | undefined;
  /** By the secret its name. */
  readonly #secrets = new Map<string, string>();
  readonly #ids = new Map<string, string>();
  readonly #known = new Map<string, Map<string, string>>();
  readonly #told: string[] = [];
  #lines = 0;
  #rows = 0;

  constructor(proxy: RunningProxy, receiver: ReturnType<typeof startReceiver> | undefined) {
    this.#proxy = proxy;
    this.#receiver = receiver;
  }

  /** The page on which a form is sent. */
  #page = "";

  /**
   * @param words `GET` or `POST`, or a dialect and a model; then `as` a key, and the body or more of it. Or `OPEN` and a page of
   * which nothing is told; `FORM` sends what it has, and in place of it what stands behind the path.
   * @param part Where the part of a page begins that is told.
   */
  async ask(words: Json[], part?: string): Promise<void> {
    const { url, post } = this.#proxy;
    const { headers: given, project, ...body } = typeof words.at(-1) === "object" ? words.pop() : ({} as Json);
    const [kind, , as, name] = words;
    const target = String(words[1]).replace(/<(.*)>/, (_, each) => this.#secretOf(each));
    const key = as && this.#secretOf(name);
    const headers = { ...(key && { "x-api-key": key }), ...given };
    const path = { chat: "/v1/chat/completions", messages: "/v1/messages" }[kind as string];
    const hello = { model: target, messages: [{ role: "user", content: "Hello" }], max_tokens: 500 };
    const response =
      kind === "FORM"
        ? await this.#send(target, as)
        : kind === "GET" || kind === "OPEN"
          ? await fetch(url + target, { headers })
          : await post(
              path ? `${project ? `/p/${project}` : ""}${path}` : target,
              path ? { ...hello, ...body } : typeof words[2] === "string" && words[2] !== "as" ? words[2] : body,
              {
                headers,
              },
            );
    const text = await response.text();
    const isPage = /html/.test(response.headers.get("content-type") ?? "");
    if (isPage) this.#page = text;
    this.#learn(/\bdrg_[\w-]{43}\b/.exec(isPage ? text : "")?.[0], "page-key");
    this.#learn(/(?<=\/sign-in\/)[\w-]{22}$/.exec(response.headers.get("location") ?? "")?.[0], "sign-in");
    if (kind === "OPEN") return;
    const json = /json/.test(response.headers.get("content-type") ?? "") ? JSON.parse(text) : undefined;
    if (json?.key && json.name) this.#secrets.set(json.key, json.name);
    if (json?.user_code && json.id) this.#secrets.set(json.id, json.user_code);
    const told = [...response.headers]
      .filter(([header]) => /^(?:retry-after|x-should-retry|x-dragoman-(?!request)|location)/.test(header))
      .map(([header, value]) => `${header}: ${value}`);
    this.#told.push([response.status, ...told].join(", "));
    if (json === undefined && target === "/metrics") this.#note("metrics", metricsIn(text));
    else if (json === undefined && !path) this.#told.push(...(text ? [isPage ? pageOf(text, part) : text] : []));
    else if (json !== undefined && (!path || !response.ok))
      this.#tell(response.ok ? `answer of ${target}` : "error", json);
  }

  async #send(path: string, filled = ""): Promise<Response> {
    const body = new URLSearchParams(await fieldsIn(this.#page));
    for (const [name, value] of new URLSearchParams(filled)) body.set(name, value);
    return fetch(this.#proxy.url + path, { method: "POST", body, redirect: "manual" });
  }

  /** A page has shown a secret, which has this name and a number from now on. */
  #learn(secret: string | undefined, name: string): void {
    if (secret === undefined || this.#secrets.has(secret)) return;
    const others = [...this.#secrets.values()].filter((each) => each.startsWith(`${name}-`));
    this.#secrets.set(secret, `${name}-${others.length + 1}`);
  }

  #secretOf(name: string): string {
    return [...this.#secrets].findLast(([, each]) => each === name)?.[0] ?? name;
  }

  /** What was told is plain. */
  forget(): void {
    this.#told.length = 0;
  }

  async changed(): Promise<string[]> {
    const { home, lines } = this.#proxy;
    const rows = this.#proxy.rows().toReversed();
    for (const row of rows.slice(this.#rows)) this.#tell("row", row);
    for (const [kind, name] of [
      ["budgets", "name"],
      ["accounts", "account_id"],
    ] as const)
      for (const item of await this.#list(kind)) this.#tell(`${kind.slice(0, -1)} ${item[name]}`, item);
    for (const file of filesIn(home)) this.#tell(`file ${file}`, contentOf(join(home, file)));
    for (const line of lines.slice(this.#lines).filter((each) => !byTimer.test(each)))
      this.#told.push(`log${line.slice(line.indexOf(" ")).trimEnd()}`);
    this.#told.push(...(this.#receiver?.received.splice(0).map((body) => `posted: ${body}`) ?? []));
    [this.#lines, this.#rows] = [lines.length, rows.length];
    return this.#told.splice(0).map((line) => this.#plain(line));
  }

  #tell(name: string, value: Json): void {
    this.#note(name, leavesOf(value));
  }

  #note(name: string, leaves: [path: string, text: string][]): void {
    const before = this.#known.get(name) ?? new Map<string, string>();
    const now = new Map(leaves);
    const told = [
      ...[...now]
        .filter(([path, text]) => before.get(path) !== text)
        .map(([path, text]) => `${path}${path && " "}${text}`),
      ...new Set([...before.keys()].filter((path) => !now.has(path)).map((path) => `no ${goneOf(path, now)}`)),
    ];
    if (told.length > 0 || !this.#known.has(name)) this.#told.push(`${name}: ${told.join(", ")}`);
    this.#known.set(name, now);
  }

  /** Without ports, folders, ids, secrets, and measured times. */
  #plain(text: string): string {
    const { home, url, demo } = this.#proxy;
    const hooks = this.#receiver ? [[this.#receiver.url, "http://hook"] as const] : [];
    const secrets = [...this.#secrets].map(([secret, name]) => [secret, `<${name}>`] as const);
    return withNames(text, [[home, "~"], [url, "http://proxy"], [demo.url, "http://github"], ...hooks, ...secrets])
      .replace(/\b\d+ ms\b/g, "0 ms")
      .replace(
        /(?<![\w.-])(?:[0-9a-f]{8}-[0-9a-f-]{27}|[0-9a-f]{16}|[0-9a-f]{64}|(?<=join\/)[\w-]{32}|(?:req|chatcmpl|msg)[-_][\w-]{16,})(?![\w-])/g,
        (id) => {
          if (!this.#ids.has(id)) this.#ids.set(id, `id${this.#ids.size + 1}`);
          return this.#ids.get(id)!;
        },
      );
  }

  async #list(kind: string): Promise<Json[]> {
    const response = await fetch(`${this.#proxy.url}/api/admin/${kind}`);
    return response.ok ? ((await response.json()) as Json).items : [];
  }
}

function pageOf(html: string, part: string | undefined): string {
  const text = ofNoRun(pageText(html, false)).trimEnd();
  return part === undefined ? text : partOf(text, part);
}

/** The part of the path that leads to nothing any more. */
function goneOf(path: string, now: ReadonlyMap<string, string>): string {
  const steps = path.split(".");
  const isGone = (part: string) => ![...now.keys()].some((each) => `${each}.`.startsWith(`${part}.`));
  return steps.map((_, at) => steps.slice(0, at + 1).join(".")).find(isGone) ?? path;
}

/** Each value within, by its path; none that is null, or measured by a clock that is not given. */
function leavesOf(value: Json, path: string[] = []): [string, string][] {
  if (value === null || value === undefined || measured.test(path.at(-1) ?? "")) return [];
  const parsed = typeof value === "string" && /^[[{]/.test(value) ? parseJson(value) : undefined;
  if (parsed !== undefined) return leavesOf(parsed, path);
  if (typeof value === "object" && Object.keys(value).length > 0)
    return Object.entries(value).flatMap(([name, each]) => leavesOf(each, [...path, name]));
  const isTime = typeof value === "number" && value > 1e12 && value < 1e13;
  return [[path.join("."), isTime ? timeOf(value) : JSON.stringify(value)]];
}

/** The history and the invitations go by the machine's own clock. */
function timeOf(ms: number): string {
  const days = [0, 7].find((each) => Math.abs(ms - each * 86_400_000 - Date.now()) < 600_000);
  if (days === undefined || ms % 60_000 === 0) return new Date(ms).toISOString().replace(/:00\.000Z|\.000Z/, "Z");
  return days === 0 ? "now" : `now + ${days} days`;
}

/** Without those of the process, durations, and the buckets that add nothing to the one before. */
function metricsIn(text: string): [string, string][] {
  const lines = text
    .trimEnd()
    .split("\n")
    .filter((line) => !/^(?:# \w+ )?(?:process_|dragoman_build_info|\w+_seconds_(?:bucket|sum))/.test(line));
  return lines.flatMap((line, at): [string, string][] => {
    const space = line.startsWith("#") ? line.indexOf(" ", 7) : line.lastIndexOf(" ");
    const [path, value] = [line.slice(0, space), line.slice(space + 1)];
    const isNew =
      !path.includes("_bucket") ||
      value !==
        (lines[at - 1]!.includes("_bucket") && !path.includes('le="1"') ? lines[at - 1]!.split(" ").at(-1) : "0");
    return isNew ? [[path, value]] : [];
  });
}

/** The history is pruned a second after the start. */
const byTimer = /history could not be pruned/;
const measured = /^(?:id|request_id|started_at_ms|(?:.*_)?(?:duration|first_byte)_ms|ms|revision|created)$/;

const filesIn = (home: string) =>
  readdirSync(home)
    .filter((file) => !/\.sqlite|\.tmp|\.lock$/.test(file))
    .sort();

/** Of the config alone; others are named. */
const contentOf = (path: string): string => (path.endsWith("config.json") ? readFileSync(path, "utf8") : "");
