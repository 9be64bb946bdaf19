/** Scenario: `dragoman service`: under a real systemd, and the log file; its files are in `fixtures/pairs/cli/`. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { followFile, lastLines } from "../../../src/cli/service/log-lines";
import { managerFor } from "../../../src/cli/service/managers";
import { run } from "../../support/command";
import { freePort } from "../../support/free-port";
import { inProcess } from "../../support/in-process";
import { describeWith } from "../../support/sandbox";
import { startUserManager, type UserManager } from "../../support/systemd";
import { temporaryFolder } from "../../support/temporary-folder";
import { until } from "../../support/until";

describeWith("systemd", "under systemd, for an ordinary user", () => {
  let manager: UserManager;
  const port = freePort();
  const url = `http://127.0.0.1:${port}`;
  const secret = `ADMIN-"b$c\`%h`;
  const env = {
    ADMIN_TOKEN: secret,
    HTTPS_PROXY: "http://me:hidden@proxy.test:1",
    DRAGOMAN_GITHUB_TOKEN: "gho_notKept",
  };
  const answers = () =>
    fetch(`${url}/health`).then(
      (answer) => answer.ok,
      () => false,
    );
  const health = () => fetch(`${url}/health`).then((answer) => answer.json());
  const mainPid = async () =>
    Number((await manager.run(["systemctl", "--user", "show", "--property=MainPID", "--value", "dragoman"])).stdout);
  const filesIn = (folder: string) =>
    [...new Bun.Glob("**/*").scanSync({ cwd: join(manager.home, folder), dot: true })].sort();

  beforeAll(async () => {
    manager = await startUserManager();
  });
  afterAll(() => manager?.[Symbol.asyncDispose]());

  test("installs, is ready, and hides secrets", async () => {
    expect(await manager.dragoman(["service", "status"])).toMatchObject({
      code: 1,
      stdout: expect.stringMatching(/^No service/),
    });
    const { code, stderr } = await manager.dragoman(
      ["service", "install", "--yes", "--demo", "--port", String(port)],
      env,
    );
    expect([code, stderr]).toEqual([0, expect.stringContaining(`is ready at ${url}.`)]);
    expect(stderr).toContain(`"--demo" "--port" "${port}"`);
    for (const hidden of [secret, "hidden", "gho_notKept"]) expect(stderr).not.toContain(hidden);
    expect(stderr).toContain("DRAGOMAN_GITHUB_TOKEN is not saved");
    expect(await health()).toMatchObject({ status: "ok", demo: true });
    // It starts when its user logs in.
    expect((await manager.run(["systemctl", "--user", "is-enabled", "dragoman.service"])).stdout.trim()).toBe(
      "enabled",
    );
    const variables = readFileSync(`/proc/${await mainPid()}/environ`, "utf8").split("\0");
    expect(variables).toContain(`ADMIN_TOKEN=${secret}`);
    expect(variables).toContain(`HTTPS_PROXY=${env.HTTPS_PROXY}`);
    expect(variables.filter((each) => each.includes("gho_"))).toEqual([]);
    const own = join(manager.home, ".local/share/dragoman/service.env");
    expect(statSync(own).mode & 0o777).toBe(0o600);
  });

  test("the unit is valid, and systemd calls its exposure OK", async () => {
    const unit = join(manager.home, ".config/systemd/user/dragoman.service");
    expect(await manager.run(["systemd-analyze", "--user", "verify", unit])).toEqual({
      code: 0,
      stdout: "",
      stderr: "",
    });
    const { stdout } = await manager.run(["systemd-analyze", "--user", "--no-pager", "security", "dragoman.service"]);
    const exposure = /Overall exposure level for dragoman.service: ([\d.]+)/.exec(stdout)?.[1];
    expect(Number(exposure)).toBeLessThanOrEqual(2);
  });

  test("it sees the file system read-only, but for its data", async () => {
    const mounts = readFileSync(`/proc/${await mainPid()}/mounts`, "utf8")
      .trim()
      .split("\n");
    const at = (path: string) => mounts.filter((line) => line.split(" ")[1] === path).map((line) => line.split(" ")[3]);
    expect(at("/").at(-1)).toStartWith("ro,");
    expect(at(join(manager.home, ".local/share/dragoman")).at(-1)).toStartWith("rw,");
    const status = readFileSync(`/proc/${await mainPid()}/status`, "utf8");
    expect(status).toMatch(/NoNewPrivs:\t1/);
    expect(status).toMatch(/CapBnd:\t0+\n/);
    expect(status).toMatch(/Seccomp:\t2/);
  });

  test("after kill -9, also in the middle of a stream, it serves again by itself", async () => {
    for (const streaming of [false, true]) {
      const before = await mainPid();
      const stream = streaming && (await openStream());
      const killed = performance.now();
      process.kill(before, "SIGKILL");
      await until(answers, "it serves again");
      expect(performance.now() - killed).toBeLessThan(8_000);
      expect(await mainPid()).not.toBe(before);
      if (stream) await stream.cancel().catch(() => {});
    }
    expect(await manager.dragoman(["service", "status", "--json"])).toMatchObject({ code: 0 });
  });

  const openStream = async () => {
    const messages = [{ role: "user", content: "[demo: silence 20] Tell me a story" }];
    const body = JSON.stringify({ model: "claude-sonnet-4.6", stream: true, messages });
    const answer = await fetch(`${url}/v1/chat/completions`, { method: "POST", body });
    const reader = answer.body!.getReader();
    expect((await reader.read()).done).toBe(false);
    return reader;
  };

  test("the log of a systemd service is in the journal", async () => {
    const { code, stdout } = await manager.dragoman(["service", "logs", "--lines", "50"]);
    expect([code, stdout]).toEqual([0, expect.stringContaining(`  Address   ${url}`)]);
  });

  test("installed again, it has the new options and the old service is gone", async () => {
    const before = await mainPid();
    const { code, stderr } = await manager.dragoman(
      ["service", "install", "-y", "--demo", `--port=${port}`, "--admin-auth=always", "--drain", "7"],
      env,
    );
    expect([code, stderr]).toEqual([0, expect.stringContaining('"--admin-auth=always"')]);
    expect(stderr).toContain("\nTimeoutStopSec=17\n");
    expect(await mainPid()).not.toBe(before);
    expect((await fetch(`${url}/api/admin/meta`)).status).toBe(401);
  });

  test("removed, it leaves its data and nothing else", async () => {
    const pid = await mainPid();
    const { code } = await manager.dragoman(["service", "uninstall", "--yes"]);
    expect(code).toBe(0);
    expect(existsSync(`/proc/${pid}`)).toBe(false);
    expect(existsSync(join(manager.home, ".config"))).toBe(false);
    expect(filesIn(".local").filter((path) => /service|\.tmp/.test(path))).toEqual([]);
    const units = await manager.run(["systemctl", "--user", "list-units", "--all", "--no-legend", "dragoman*"]);
    expect(units.stdout).toBe("");
    expect(await manager.dragoman(["service", "uninstall", "--yes"])).toMatchObject({ code: 0 });
  });

  test("a server that runs already is named, and nothing is written", async () => {
    using server = Bun.listen({ hostname: "127.0.0.1", port: 0, socket: { data() {} } });
    const { code, stderr } = await manager.dragoman(["service", "install", "--yes", "--port", String(server.port)]);
    expect([code, stderr]).toEqual([1, expect.stringContaining(`Port ${server.port} is in use by`)]);
    expect(existsSync(join(manager.home, ".config"))).toBe(false);
  });
});

describe("the command", () => {
  test("the command shows the files and changes nothing with --print", async () => {
    await using command = run(["service", "install", "--print", "--port", "4999", "--host", "localhost"]);
    expect(await command.exited).toBe(0);
    expect(command.stderr()).toContain('"--port" "4999" "--host" "localhost"');
    expect(readdirSync(command.home).filter((name) => name !== ".bun")).toEqual([]);
  });

  test("without a service manager that answers it says so, and without a person it does not guess", async () => {
    const { code, stderr } = await inProcess(["service", "install", "--port", String(freePort())]);
    expect(code).toBeGreaterThan(0);
    expect(stderr).toMatch(/systemd does not answer|Add --yes|Unknown/);
    expect(await inProcess(["service", "logs"])).toMatchObject({ code: 1 });
    expect(await inProcess(["service", "logs", "--lines", "x"])).toMatchObject({ code: 2 });
  });
});

test("every manager's own commands name one service", () => {
  for (const platform of ["linux", "darwin"] as const) {
    const manager = managerFor(platform)!;
    const places = { home: "/data", personHome: "/home/x" };
    const commands = [...manager.install(places), ...manager.uninstall(places)].map(({ command }) => command);
    expect(commands.length).toBeGreaterThanOrEqual(3);
    for (const command of [...commands, manager.restart]) expect(command.join(" ")).toMatch(/dragoman|daemon-reload/);
    expect(manager.paths(places)[0]).toMatch(/\.(?:service|plist)$/);
  }
  for (const platform of ["win32", "freebsd"] as const) expect(managerFor(platform)).toBeUndefined();
});

describe("the log file", () => {
  const folder = temporaryFolder(afterAll);

  test("the log file holds what stderr would, and is private", async () => {
    const path = join(folder, "a.log");
    await using command = run(["start", "--demo", "--json", "--port", "0", "--log-file", path]);
    const { url } = await command.ready();
    await fetch(`${url}/v1/models`);
    command.process.kill();
    expect(await command.exited).toBe(0);
    expect(command.stderr()).toBe("");
    expect(readFileSync(path, "utf8")).toContain(`Address: ${url}`);
    expect(readFileSync(path, "utf8")).toContain("stopping");
    expect(statSync(path).mode & 0o777).toBe(0o600);
  });

  test("a path that cannot be written is named", async () => {
    expect(await inProcess(["start", "--demo", "--log-file", join(folder, "none/a.log")])).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(/The log file .*none\/a\.log cannot be written \(ENOENT\)/),
    });
  });

  test("the log file begins again when it is full; the reader follows", async () => {
    const path = join(folder, "b.log");
    const script = `
      const { logToFile } = await import(${JSON.stringify(join(import.meta.dir, "../../../src/cli/start/log-file.ts"))});
      logToFile(${JSON.stringify(path)}, 1000);
      process.stderr.write("old ".repeat(300) + "\\n");
      process.stdin.on("data", (text) => process.stderr.write(text));`;
    const child = Bun.spawn([process.execPath, "-e", script], { stdin: "pipe", stdout: "inherit", stderr: "pipe" });
    await until(() => existsSync(path) && statSync(path).size > 1000, "the log is written");
    expect(lastLines(path, 5)).toEqual(["old ".repeat(300)]);
    const controller = new AbortController();
    let seen = "";
    const following = followFile(path, (text) => (seen += text), controller.signal);
    child.stdin.write("one\nünd zwei\n");
    await until(() => seen === "one\nünd zwei\n", "the first lines are shown");
    expect(readFileSync(`${path}.1`, "utf8")).toStartWith("old ");
    child.stdin.write("three\n");
    await until(() => seen.endsWith("three\n"), "the third line is shown");
    controller.abort();
    await following;
    expect(lastLines(path, 2)).toEqual(["ünd zwei", "three"]);
    child.kill();
    await child.exited;
  });

  test("where the full file cannot be put aside, as in a folder of somebody else, it grows and no line is lost", async () => {
    const path = join(folder, "d.log");
    mkdirSync(join(`${path}.1`, "in the way"), { recursive: true });
    const script = `
      const { logToFile } = await import(${JSON.stringify(join(import.meta.dir, "../../../src/cli/start/log-file.ts"))});
      logToFile(${JSON.stringify(path)}, 10);
      for (const line of ["a longer one", "two", "three"]) process.stderr.write(line + "\\n");`;
    expect(await Bun.spawn([process.execPath, "-e", script]).exited).toBe(0);
    expect(lastLines(path, 5)).toEqual(["a longer one", "two", "three"]);
  });

  test("lines of a file that is not there are none", () => {
    expect(lastLines(join(folder, "none.log"), 5)).toEqual([]);
    writeFileSync(join(folder, "c.log"), "whole\npart");
    expect(lastLines(join(folder, "c.log"), 5)).toEqual(["whole"]);
  });
});
