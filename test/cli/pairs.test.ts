/** Pairs: what commands make of what they were given or have measured, from `fixtures/pairs/cli/`. */
import { setSystemTime, spyOn, test } from "bun:test";
import fs, { appendFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { parse as parsePlist } from "plist";
import { judgeDisk } from "../../src/cli/checks/files";
import { judgeClock } from "../../src/cli/checks/network";
import { probeCost, probeModel } from "../../src/cli/connect/probe";
import { maskSecrets } from "../../src/cli/connect/redact";
import { copyToClipboard, openBrowser } from "../../src/cli/desktop";
import { bunName, type Installation, type InstallationKind, installationOf } from "../../src/cli/installation";
import { openReport } from "../../src/cli/report";
import { type ServiceDefinition, serviceVariables, shownValue } from "../../src/cli/service/definition";
import { launchdFile } from "../../src/cli/service/launchd";
import { followFile, lastLines } from "../../src/cli/service/log-lines";
import { systemdFiles } from "../../src/cli/service/systemd";
import { bindingFor } from "../../src/cli/start/listen";
import { refusedPort } from "../../src/cli/start/port-owner";
import { print } from "../../src/cli/terminal";
import { type Place, update, ways } from "../../src/cli/update/update";
import { UsageError } from "../../src/cli/usage-error";
import type { ClientModel, ToolDialect } from "../../src/clients/models";
import { readEnvironment } from "../../src/config/environment";
import { startOfDayIn } from "../../src/lib/format";
import { inProcess } from "../support/in-process";
import { outOf, testPairs } from "../support/pairs";
import { startReleaseHost } from "../support/release-host";
import { temporaryFolder } from "../support/temporary-folder";
import { until } from "../support/until";

interface Answer {
  status?: number;
  body?: unknown;
  /** How often the text of the body comes. */
  times?: number;
  location?: string;
}

testPairs("cli", {
  /** A desktop's variables and programs: which of these gets a text, and which an address, with what each is given. */
  async desktop(variables: Record<string, string>, ...programs: string[]) {
    const [folder, before] = [temporaryFolder(), { ...process.env }];
    const called = join(folder, "called");
    for (const name of programs) {
      const script = `#!/bin/sh\nset -- ${name} "$@" "$(/bin/cat)"\necho "$@" > ${called}.new && /bin/mv ${called}.new ${called}\n`;
      writeFileSync(join(folder, name), script, { mode: 0o755 });
    }
    const by = async (act: () => boolean) => {
      if (!act()) return "nobody";
      await until(() => fs.existsSync(called), "it was called");
      const text = fs.readFileSync(called, "utf8").trim();
      fs.rmSync(called);
      return text;
    };
    const names = ["CI", "DISPLAY", "SSH_CONNECTION", "SSH_TTY", "WAYLAND_DISPLAY", "WSL_DISTRO_NAME"];
    for (const name of names) delete process.env[name];
    Object.assign(process.env, { PATH: folder, ...variables });
    try {
      return [await by(() => copyToClipboard("a text")), await by(() => openBrowser("https://x.example"))];
    } finally {
      for (const name of names) delete process.env[name];
      Object.assign(process.env, before);
    }
  },
  /** The names of so many reports of one minute, of which nothing stays where nothing was written. */
  "report-names"(count: number) {
    const before = process.cwd();
    process.chdir(temporaryFolder());
    setSystemTime(new Date("2026-11-10T06:07:08Z"));
    try {
      const reports = Array.from({ length: count }, () => openReport());
      for (const report of reports) report[Symbol.dispose]();
      return [...reports.map(({ path }) => path), ...fs.readdirSync(".")];
    } finally {
      setSystemTime();
      process.chdir(before);
    }
  },
  /** A tool's dialect, its model and those that there are: with which a test call is made, and for how much. */
  probe(dialect: ToolDialect, own: object, ...all: object[]) {
    const modelOf = (more: object) =>
      ({ id: "own", endpoints: [], premium: true, light: false, ...more }) as unknown as ClientModel;
    const model = probeModel(dialect, modelOf(own), all.map(modelOf));
    return `${model.id}: ${probeCost(model)}`;
  },
  /** How many lines of a log are asked for, and what it has. */
  "last-lines"(count: number, text: string | null) {
    const path = join(temporaryFolder(), "service.log");
    if (text !== null) writeFileSync(path, text);
    return lastLines(path, count);
  },
  /** What becomes of each attempt to write a result: an error, or so many bytes are taken. */
  print(...attempts: (string | number)[]) {
    let printed = "";
    const written = spyOn(fs, "writeSync").mockImplementation((_file: number, bytes: unknown) => {
      const next = attempts.shift() ?? Infinity;
      if (typeof next === "string") throw Object.assign(new Error(next), { code: next });
      const taken = (bytes as Buffer).subarray(0, next).toString();
      printed += taken;
      return Buffer.byteLength(taken);
    });
    try {
      return outOf(() => print("one", "two")).then((out) => ({ printed, left: attempts.length, ...(out as object) }));
    } finally {
      written.mockRestore();
    }
  },
  /** The text of a settings file, in which the owner's key is another secret. */
  redact: (text: string) => maskSecrets(text, ["the-client-key-of-the-owner", 'a "quoted" key']),
  /** Mebibytes that are free. */
  disk: (mebibytes: number) => judgeDisk(mebibytes * 1024 * 1024),
  /** By how many milliseconds each host says that this machine is ahead. */
  clock: (...ahead: number[]) => judgeClock(ahead),
  host: (host?: string) =>
    bindingFor(host).catch((thrown) => {
      if (!(thrown instanceof UsageError)) throw thrown;
      return { usage: thrown.message };
    }),
  /** The variables that a service of systemd gets, in a folder: what its unit reads, and the file that has them. */
  "service-variables"(variables: Record<string, string>, folder = "/home/x/units") {
    const service = { command: ["dragoman"], variables, stopSeconds: 60, home: "/home/x/data", personHome: "/home/x" };
    const places = { units: folder, variables: `${folder}/variables` };
    const [unit, ...files] = systemdFiles(service, places, false);
    return { unit: unit!.path, reads: /^EnvironmentFile=.*$/m.exec(unit!.content)?.[0], files };
  },
  /** What runs, and its environment, where it is an executable. */
  installation: (main: string, env?: Record<string, string>) =>
    installationOf({
      ...{ execPath: env ? main : "/usr/bin/bun", execArgv: env ? [] : ["--x"], isExecutable: env !== undefined },
      ...{ main, env: env ?? {}, cwd: "/" },
    }),
  /**
   * A service, beside what is plain, and whether namespaces can be had: systemd's files, and what launchd reads in its own; what
   * is shown of them where that differs.
   */
  "service-files"(given: Partial<ServiceDefinition>, hasNamespaces = true) {
    const plain = {
      command: ["dragoman"],
      variables: {},
      stopSeconds: 60,
      home: "/home/x/data",
      personHome: "/home/x",
    };
    const service = { ...plain, ...given };
    const { path, content, shown } = launchdFile(service);
    const places = { units: "/home/x/units", variables: "/home/x/50 %/service.env" };
    const [read, told] = [content, shown].map((text) => parsePlist(String(text)));
    const systemd = systemdFiles(service, places, hasNamespaces).map(({ shown, ...file }) => ({
      ...file,
      ...(shown !== file.content && { shown }),
    }));
    const [xml, type] = String(content).split("\n");
    return { systemd, launchd: { path, xml, type, read, ...(!Bun.deepEquals(told, read) && { told }) } };
  },
  /** What a service gets of an environment, and how each of these variables would be shown. */
  "service-gets"(env: Record<string, string>) {
    const shown = Object.fromEntries(Object.entries(env).map(([name, value]) => [name, shownValue(name, value)]));
    return { gets: serviceVariables(env, readEnvironment(env, "linux")), shown };
  },
  "refused-port": (...given: Parameters<typeof refusedPort>) => refusedPort(...given),
  /** What a server answers to `login` in turn; where it begins a sign-in, what is other of that. */
  async login(begun: Answer, ...tokens: Answer[]) {
    const home = temporaryFolder();
    using server = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      fetch({ url }) {
        if (url.endsWith("/token")) return responseOf(tokens.shift()!);
        const page = `${new URL(url).origin}/admin/device`;
        const usual = { verification_uri: page, verification_uri_complete: page, expires_in: 60, interval: 0 };
        if (begun.status !== undefined) return responseOf(begun);
        return Response.json({ device_code: "d", user_code: "BCDF-GHJK", ...usual, ...(begun.body as object) });
      },
    });
    const { code, stdout, stderr } = await inProcess(["login", server.url.origin], { HOME: home, DRAGOMAN_HOME: home });
    return { code, printed: stdout, said: stderr.replaceAll(server.url.origin, "SERVER").split("\n").slice(0, -1) };
  },
  /** A zone and a moment: when the day there has begun. */
  day: (zone: string, at: string) => new Date(startOfDayIn(zone, Date.parse(at))),
  /** How this copy was installed, and what is special of the place: what to type. */
  way: (kind: InstallationKind, place: Partial<Place>) =>
    ways[kind]({ path: "", repository: undefined, home: "/home/x", platform: "linux", bun: "bun", ...place }),
  /** The version, how it was installed, and what the host of releases answers; `own` is a build that knows none. */
  async update(version: string, kind: InstallationKind, answer?: Answer | "own") {
    await using host = startReleaseHost();
    if (typeof answer === "object") host.instead = () => responseOf(answer);
    let printed = "";
    const written = spyOn(fs, "writeSync").mockImplementation((_file: number, bytes: unknown) => {
      printed += String(bytes);
      return Buffer.byteLength(String(bytes));
    });
    const warned = spyOn(process.stderr, "write").mockImplementation(() => true);
    try {
      const installation: Installation = { kind, command: ["/clone/dist/dragoman"] };
      const environment = readEnvironment({ HOME: "/home/x" }, "linux");
      const source = answer === "own" ? undefined : host.source;
      const code = await update({ version, environment, installation, source });
      const said = warned.mock.calls.map(([line]) => String(line)).join("");
      const told = { code, printed: printed.split("\n").slice(0, -1), said: said.split("\n").slice(0, -1) };
      const out = { ...told, asked: host.seen, by: [...host.agents] };
      return JSON.parse(JSON.stringify(out).replaceAll(bunName(process.env), "bun"));
    } finally {
      written.mockRestore();
      warned.mockRestore();
    }
  },
});

test("a log that is followed goes on in whole lines, and from the beginning of a file that took its place", async () => {
  const path = join(temporaryFolder(), "service.log");
  const following = new AbortController();
  let seen = "";
  const followed = followFile(path, (text) => (seen += text), following.signal);
  const says = (all: string) => until(() => seen === all, `it has said ${JSON.stringify(all)}`);
  writeFileSync(path, "one\ntw");
  await says("one\n");
  appendFileSync(path, "o\nthree\n");
  await says("one\ntwo\nthree\n");
  writeFileSync(`${path}.new`, "a new file that is much longer\n");
  renameSync(`${path}.new`, path);
  await says("one\ntwo\nthree\na new file that is much longer\n");
  writeFileSync(path, "short\n");
  await says("one\ntwo\nthree\na new file that is much longer\nshort\n");
  following.abort();
  await followed;
});

const responseOf = ({ status = 200, body = "", times = 1, location }: Answer) =>
  new Response(typeof body === "string" ? body.repeat(times) : JSON.stringify(body), {
    status,
    headers: location === undefined ? {} : { location },
  });
