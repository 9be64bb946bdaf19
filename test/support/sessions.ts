/**
 * The files of `fixtures/sessions/`: what a person types, and all that comes of it, to the last character: what is
 * printed, the exit code, and every file that is written. `test/README.md` has the words of a line. `UPDATE=1` writes the
 * files anew: read the difference.
 */
import { expect, setSystemTime } from "bun:test";
import { lstatSync, mkdirSync, readdirSync, readFileSync, readlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { structuredPatch } from "diff";
import { version } from "../../package.json";
import { bannerFacts } from "../../src/cli/start/banner";
import { unifiedDiff } from "../../src/clients/settings-file/diff";
import { type DemoAccount, demoAccounts, quotas } from "../../src/demo/accounts";
import type { DemoOptions } from "../../src/demo/demo";
import { openTrustedProxies } from "../../src/lib/net/in/trusted-proxies";
import { scriptedGithub } from "../cli/bench";
import { autoAccounts } from "./auto-accounts";
import { milliseconds, testBlocks, withNames } from "./blocks";
import { type DriftWay, drifted, type ListName, lists } from "./drifted";
import { freePort } from "./free-port";
import { appKey, installApp } from "./github-app";
import { inProcess } from "./in-process";
import { startOpenAiServer } from "./openai-server";
import { until } from "./until";

/** The line with `:` behind the title. */
interface Setup {
  /** Who is signed in, by the first word of their logins. */
  accounts?: string[];
  quota?: Record<string, keyof typeof quotas>;
  generation?: DemoOptions["generation"];
  /** GitHub lists these models alone, all of them enabled. */
  models?: string[];
  config?: object;
  env?: Record<string, string>;
  /** A server runs: of the data folder, the demo beside, or both. */
  server?: "own" | "demo" | "both";
  /** How it is started. */
  start?: { adminAuth?: "always"; trustedProxies?: string[]; env?: Record<string, string> };
  /** How the upstream has changed without notice, and the form of its list of models. */
  drift?: DriftWay[];
  list?: ListName;
  /** A GitHub App is installed in an organization, and its key is APPKEY, in one line APPLINE. */
  app?: "ready" | "suspended";
  /** Of the terminal that the commands print to, which shows no colours. */
  columns?: number;
}

const begun = Date.parse("2026-11-10T06:00:00Z");
/** What servers write whenever they want, and what has no text. */
const unread = /\.sqlite(?:-\w+)?$|\.keys$|running\.json$|\.tmp-|\.?lock$|^\.bun|\.git$/;
/** What an undo needs, and a report that is looked at elsewhere: that it is there, and not what it holds. */
const kept = /dragoman\/connect\/.*\.json$|^unread\.md$/;

/** Paths, and what a service is, are those of Linux. */
export const testSessions = (name: string) =>
  testBlocks(`sessions/${name}.txt`, play, { skip: process.platform !== "linux", prefix: `${name}: ` });

/** The block as it should stand there. */
async function play(block: string): Promise<string> {
  const [title = "", first = "", ...rest] = block.split("\n");
  const setup: Setup = first.startsWith(": ") ? JSON.parse(first.slice(2)) : {};
  const steps = (first.startsWith(": ") ? rest : [first, ...rest]).filter((line) => /^[#$%<@]|^ {2}: /.test(line));
  setSystemTime(begun);
  try {
    await using stage = await openStage(setup);
    const out = [title, ...(first.startsWith(": ") ? [first] : [])];
    for (let at = 0; at < steps.length; at++) {
      const line = steps[at]!;
      // Of a file that a command has written, whose lines come anew.
      if (line.startsWith("  : ")) continue;
      out.push(line);
      const [sign, text] = [line[0]!, line.slice(2)];
      if (sign === "<") {
        const lines: string[] = [];
        while (steps[at + 1]?.startsWith("  : ")) lines.push(steps[++at]!.slice(4));
        stage.write(text, lines.map((each) => `${each}\n`).join(""));
        out.push(...lines.map((each) => `  : ${each}`));
      } else if (sign === "%") stage.shell(text);
      else if (sign === "@") out.push(...(await stage.happen(text.split(" "))));
      else if (sign === "$") out.push(...(await stage.type(text)));
    }
    return out.join("\n");
  } finally {
    setSystemTime();
  }
}

async function openStage(setup: Setup) {
  const accounts = demoAccounts().concat(Object.values(autoAccounts()));
  for (const [login, quota] of Object.entries(setup.quota ?? {})) named(accounts, login).quota = quotas[quota]();
  if (setup.models) for (const account of accounts) account.models = setup.models;
  const list = { generation: undefined, change: (answer: Response) => answer, ...(setup.list && lists[setup.list]) };
  const github = scriptedGithub({
    accounts,
    now: Date.now,
    generation: setup.generation ?? list.generation,
    // The server's own clock is not the one that stands still.
    change: async (response, path) => {
      response.headers.set("date", new Date().toUTCString());
      return drifted(...(setup.drift ?? []))(await list.change(response, path), path);
    },
  });
  if (setup.app) installApp(github.demo, { suspended: setup.app === "suspended" });
  github.signIn(...(setup.accounts ?? []).map((name) => named(accounts, name).login));
  const { home, data, demo } = github;
  const port = freePort();
  const provider = JSON.stringify(setup.config ?? {}).includes("PROVIDER")
    ? await startOpenAiServer("pk-provider-0123456789")
    : undefined;
  const env = { ...github.env, SHELL: "/bin/bash", ...(setup.columns && { NO_COLOR: "1" }), ...setup.env };
  mkdirSync(data, { recursive: true, mode: 0o700 });
  if (setup.config)
    writeFileSync(join(data, "config.json"), JSON.stringify(setup.config).replaceAll("PROVIDER", provider?.url ?? ""), {
      mode: 0o600,
    });
  const servers = (["demo", "own"] as const)
    .filter((each) => setup.server === each || setup.server === "both")
    .map((each) =>
      github.serve({
        demo: each === "demo",
        adminAuth: setup.start?.adminAuth,
        trustedProxies: setup.start?.trustedProxies && openTrustedProxies(setup.start.trustedProxies),
        env: { ...env, ...setup.start?.env },
      }),
    );
  const server = servers.at(-1);
  /** What differs from run to run, as the lines have it. */
  const names: [string, string][] = [
    [demo.url.replace("http://", ""), "github.test"],
    [String(port), "44444"],
    [home, "/home/ann"],
    [appKey.trim(), "APPKEY"],
    [appKey.trim().replaceAll("\n", "\\n"), "APPLINE"],
    [`${process.platform} ${process.arch}`, "PLATFORM"],
    [Bun.version, "BUN"],
    ...servers.toReversed().flatMap(({ url, port }, at): [string, string][] => [
      [url.replace("http://", ""), `${["server", "demo"][at]}.test`],
      [String(port), "41410"],
    ]),
  ];

  /** How much of the journal was told. */
  let told = 0;

  const given = (text: string) => names.reduce((all, [actual, name]) => all.replaceAll(name, actual), text);
  const plain = (text: string) =>
    withNames(text.replace(/\r[^\r\n]*\x1b\[K/g, ""), names)
      .replace(new RegExp(`(?<![\\d.])${RegExp.escape(version)}(?![\\d.])`, "g"), "VERSION")
      .replace(/\(process \d+\)/g, "(process PID)")
      .replace(/\b\d+(?:\.\d+)? m?s(?=[.):]|$)/gm, "TIME")
      .replace(/\banswered in \d+ ms/g, "answered in TIME")
      .replace(/\b[\d.]+ [GT]iB are free/g, "ENOUGH is free")
      .replace(/(?<="started_at_ms":)\d+(?=,"(?:running|time_zone))/, "0")
      .replace(/\b[\da-f]{64}\b/g, "SHA256")
      .replace(/[^\s=]*\/dragoman-run-\w{6}\//g, "TEMPORARY/")
      .replace(/-[\da-f]{12}(?=\.(?:json|changed)\b)/g, "-ID");
  const pathOf = (path: string) => given(path).replace(/^~/, home);

  /** What each path below the home is: its rights in the first line, then its text. A link is what it names, a folder what is in it. */
  function files(folder = ""): Map<string, string> {
    const all = readdirSync(join(home, folder)).sort();
    if (all.length === 0 && !isOurs(folder)) return new Map([[`${folder}/`, "empty\n"]]);
    return new Map(
      all.flatMap((name): [string, string][] => {
        const [each, path] = [join(folder, name), join(home, folder, name)];
        if (unread.test(each)) return [];
        const found = lstatSync(path);
        const rights = (found.mode & 0o777).toString(8);
        if (found.isDirectory()) return [...files(each)];
        if (found.isSymbolicLink()) return [[each, `→ ${readlinkSync(path)}\n`]];
        if (!found.isFile() || kept.test(each)) return [[each, `${rights}\n`]];
        return [[each, `${rights}\n${found.size > 200_000 ? found.size : readFileSync(path, "utf8")}`]];
      }),
    );
  }

  /** The words of a line as a shell takes them: quotes, and variables before the command. */
  function wordsOf(line: string): { words: string[]; more: Record<string, string> } {
    const words = (given(line).match(/(?:"[^"]*"|'[^']*'|\S)+/g) ?? []).map((word) =>
      word.replace(/["'](.*?)["']/g, "$1"),
    );
    const at = words.findIndex((word) => !/^[A-Z_]+=/.test(word));
    return {
      words: at < 0 ? [] : words.slice(at).map((word) => word.replace(/^~/, home)),
      more: Object.fromEntries(
        words.slice(0, Math.max(at, 0)).map((word) => [word.split("=")[0]!, word.slice(word.indexOf("=") + 1)]),
      ),
    };
  }

  return {
    write(path: string, text: string) {
      mkdirSync(dirname(pathOf(path)), { recursive: true });
      writeFileSync(pathOf(path), given(text), { mode: 0o600 });
    },
    shell(line: string) {
      const { exitCode, stderr } = Bun.spawnSync(["sh", "-c", `umask 077; ${given(line)}`], {
        env: { ...process.env, HOME: home },
        cwd: home,
      });
      if (exitCode !== 0) throw new Error(`${line}: ${stderr}`);
    },
    async type(line: string): Promise<string[]> {
      const [command = "", answer] = line.split(" <<< ");
      const { words, more } = wordsOf(command);
      const before = files();
      const { code, stdout, stderr } = await inProcess(
        words,
        { ...env, ...more },
        { columns: setup.columns, ...(answer !== undefined && { stdin: `${answer}\n` }) },
      );
      const after = files();
      const widest = setup.columns ?? Number.POSITIVE_INFINITY;
      expect(`${stdout}\n${stderr}`.split("\n").filter((each) => Bun.stringWidth(each) > widest)).toEqual([]);
      const found = [stdout, ...after.values()].join("\n").match(/\bdrg_[\w-]{43}(?![\w-])/g) ?? [];
      for (const key of new Set(found).difference(new Set(names.map(([actual]) => actual)))) {
        const name = `KEY${names.filter((each) => each[1].startsWith("KEY")).length + 1}`;
        names.push([key, name], [`…${key.slice(-4)}`, `…${name}`]);
      }
      const shown = (sign: string, text: string) =>
        text === ""
          ? []
          : plain(text.replace(/\n$/, ""))
              .split("\n")
              .map((each) => `  ${sign} ${each}`.trimEnd());
      const changed = [...new Set([...before.keys(), ...after.keys()])].flatMap((each) => {
        const now = after.get(each);
        if (now === before.get(each)) return [];
        if (now === undefined) return [`  - ${plain(each)}`];
        const former = before.get(each);
        const line = `  ${former === undefined ? "+" : "~"} ${plain(each)} ${rightsIn(now)}`;
        if (isDiffIn(stdout, each, former === undefined ? "" : textIn(former), textIn(now)))
          return [`${line}, as shown`];
        return [line, ...shown(":", former === undefined ? textIn(now) : changesIn(textIn(former), textIn(now)))];
      });
      return [...shown("|", stdout), ...shown("!", stderr), ...(code === 0 ? [] : [`  = ${code}`]), ...changed];
    },
    /** What happens beside the commands. */
    async happen([what, ...words]: string[]): Promise<string[]> {
      const [one = "", two = ""] = words;
      const asked = async (method: string) => {
        const body = method === "GET" ? undefined : words.slice(1).join(" ");
        const headers = { "content-type": "application/json" };
        const response = await fetch(servers.at(-1)!.url + one, { method, headers, body });
        return [`  < ${response.status} ${method === "GET" ? plain(await response.text()) : ""}`.trimEnd()];
      };
      const events: Record<string, () => unknown> = {
        pass: () => setSystemTime(Date.now() + milliseconds(one)),
        answer: () => {
          const body = given(words.slice(2).join(" ")) || "{}";
          demo.intercept(
            one,
            () => new Response(body, { status: Number(two), headers: { "content-type": "application/json" } }),
            100,
          );
        },
        /** What GitHub and Copilot were asked since, in no order, and by whose token. */
        asked: () => {
          const all = demo.journal.slice(told).map(({ method, path, headers, account }) => {
            const owner = demo.accounts.find(({ githubToken }) => headers.authorization?.endsWith(githubToken));
            return [method, path, account ?? owner?.login].filter(Boolean).join(" ");
          });
          told = demo.journal.length;
          const counted = [...Map.groupBy(all.toSorted(), (each) => each)];
          const lines = counted.map(([each, { length }]) => `  < ${length > 1 ? `${length}x ` : ""}${each}`);
          return lines.length > 0 ? lines : ["  <"];
        },
        revoke: () => {
          named(demo.accounts, one).githubToken = "ghu_revoked";
        },
        ask: async () => {
          const response = await fetch(`${server!.url}/v1/chat/completions`, {
            method: "POST",
            headers: { "content-type": "application/json", ...(two && { "x-api-key": given(two) }) },
            body: JSON.stringify({ model: one, messages: [{ role: "user", content: "Hello" }] }),
          });
          const { error } = (await response.json()) as { error?: { code?: string; message: string } };
          await server!.app.history.flush();
          return [`  < ${[response.status, error?.code, error && plain(error.message)].filter(Boolean).join(" ")}`];
        },
        /** What a person reads when the server has started. */
        banner: () =>
          bannerFacts({ app: server!.app, listening: { ...server!, exposed: false } as never }).map(
            (line) => `  < ${plain(line)}`,
          ),
        /** What the last request to the upstream was. */
        sent: () => {
          const { path, headers, body } = demo.journal.at(-1)!;
          return [`  < ${path} by ${headers["x-initiator"]}: ${JSON.stringify(body)}`];
        },
        stop: () => servers.pop()![Symbol.dispose](),
        POST: () => asked("POST"),
        GET: () => asked("GET"),
        logs: () =>
          until(() => server!.lines.some((line) => line.includes(words.join(" "))), `the log has ${words.join(" ")}`),
      };
      if (!events[what!]) throw new Error(`Nothing that happens: ${what}`);
      const lines = await events[what!]!();
      return Array.isArray(lines) ? lines : [];
    },
    async [Symbol.asyncDispose]() {
      for (const each of servers) each[Symbol.dispose]();
      await provider?.[Symbol.asyncDispose]();
      await github[Symbol.asyncDispose]();
    },
  };
}

/** A folder of the program's own, which may be empty. */
const isOurs = (path: string) => /^$|^\.(?:local|bun)\b/.test(path);
const rightsIn = (file: string) => file.slice(0, file.indexOf("\n"));
const textIn = (file: string) => file.slice(file.indexOf("\n") + 1);

/** Whether a command's output has this change to the last byte; the differences that it prints are tested in `clients/diff.test.ts`. */
const isDiffIn = (stdout: string, name: string, before: string, after: string): boolean =>
  [before, after].every((text) => text === "" || (text.endsWith("\n") && !text.includes("\r"))) &&
  before !== after &&
  `\n${stdout}`.includes(`\n${unifiedDiff(before, after, `~/${name}`).join("\n")}\n`);

/** The lines that went and came, with the one around them. */
const changesIn = (before: string, after: string): string =>
  structuredPatch("", "", before, after, "", "", { context: 1 })
    .hunks.map(({ lines }) => lines.join("\n"))
    .join("\n…\n");

const named = (accounts: readonly DemoAccount[], name: string) =>
  accounts.find(({ login }) => login === `${name}-demo`)!;
