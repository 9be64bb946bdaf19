/** Scenario: the disk fails: requests go on, and what can be kept is kept. */
import { Database } from "bun:sqlite";
import { expect, onTestFinished, test } from "bun:test";
import {
  chmodSync,
  chownSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { openHistory } from "../../src/books/history/history";
import { demoAccounts } from "../../src/demo/accounts";
import { openAccountStore } from "../../src/people/accounts/account-store";
import { ask, scriptedGithub } from "../cli/bench";
import { keptLog, savedFrom } from "../people/accounts/bench";
import { type Command, run } from "../support/command";
import { entry } from "../support/history-rows";
import { postJson } from "../support/post-json";
import { testWith } from "../support/sandbox";
import { temporaryFolder } from "../support/temporary-folder";
import { until } from "../support/until";

const asRoot = process.getuid?.() === 0;
/** The program with its data on a disk of its own, small enough to fill, which no one else sees. */
function onSmallDisk(folder: string, kilobytes: number): Command & { disk: () => string } {
  const script = `mount -t tmpfs -o size=${kilobytes}k,mode=0700 tmpfs ${folder} && exec "$@"`;
  const command = run(["start", "--demo", "--json", "--port", "0"], {
    within: ["unshare", "-Urm", "sh", "-c", script, "sh"],
    env: { DRAGOMAN_HOME: join(folder, "data") },
  });
  return { ...command, disk: () => `/proc/${command.process.pid}/root${folder}` };
}

function fillUp(file: string): void {
  for (let size = 1024 * 1024; size > 512; )
    try {
      writeFileSync(file, new Uint8Array(size), { flag: "a" });
    } catch {
      // No room for so much at once.
      size /= 2;
    }
}

testWith(
  "mounts",
  "a full disk costs no request and no config; rows wait, and are written when there is room",
  async () => {
    const folder = temporaryFolder();
    // The made-up past of the demo takes up to 9 MB.
    await using command = onSmallDisk(folder, 16 * 1024);
    const { url } = await command.ready();
    const served = async () => {
      const response = await ask(url);
      await response.arrayBuffer();
      return response.status;
    };
    const configure = (change: object) => postJson(`${url}/api/admin/config`, change);
    const shown = async (path: string) => (await fetch(url + path)).json() as Promise<Record<string, unknown>>;
    const budgets = async () =>
      ((await shown("/api/admin/config")) as { config: { budgets: object[] } }).config.budgets;
    await until(async () => (await budgets()).length > 0, "the demo has its budget");
    const { row_count: past } = (await shown("/api/admin/meta")) as { row_count: number };
    expect(await served()).toBe(200);
    // A budget that cannot be checked lets no request through.
    expect((await configure({ logLevel: "warn", budgets: [] })).status).toBe(200);
    const file = join(command.disk(), "data", "demo", "config.json");
    const before = readFileSync(file, "utf8");

    const filler = join(command.disk(), "filler");
    fillUp(filler);
    // The log of the database may have room left that it took before.
    let sent = 1;
    await until(async () => {
      expect(await Promise.all(Array.from({ length: 400 }, served))).toEqual(Array(400).fill(200));
      sent += 400;
      return (await shown("/health")).history === "degraded";
    }, "the history is degraded");
    expect(await shown("/api/admin/meta")).toMatchObject({ history: "degraded" });
    expect(command.stderr().match(/history cannot be written/g)).toHaveLength(1);

    fillUp(filler);
    const refused = await configure({
      logLevel: "error",
      upstreamHeaders: { "x-one": "a".repeat(4000), "x-two": "b".repeat(4000) },
    });
    expect([refused.status, await refused.json()]).toMatchObject([
      500,
      { error: { type: "config_write_failed", message: expect.stringMatching(/disk|space/) } },
    ]);
    expect(readFileSync(file, "utf8")).toBe(before);
    expect(await shown("/api/admin/config")).toMatchObject({ config: { logLevel: "warn" } });
    expect(readdirSync(join(command.disk(), "data", "demo")).filter((name) => name.includes("tmp"))).toEqual([]);

    rmSync(filler);
    await until(async () => (await shown("/health")).history === "ok", "the history is ok");
    expect(await shown("/api/admin/meta")).toMatchObject({ history: "ok", row_count: past + sent });
    expect((await configure({ logLevel: "error" })).status).toBe(200);
  },
);

test("while another program reads for long, rows are written, and a log that grows is warned of", async () => {
  const path = join(temporaryFolder(), "admin.sqlite");
  const warnings: string[] = [];
  const history = openHistory(path, {
    retentionDays: () => 14,
    maxRows: () => 1000,
    warn: (sentence) => void warnings.push(sentence),
    now: Date.now,
  });
  onTestFinished(() => history.close());
  using reader = new Database(path);
  reader.run("BEGIN");
  reader.query("SELECT count(*) FROM requests").get();
  for (let turn = 0; turn < 500; turn++) history.add(entry({ started_at_ms: Date.now() }));
  expect(history.flush()).toBe(true);
  expect(history.count()).toBe(500);
  const size = 65 * 1024 * 1024;
  expect(statSync(`${path}-wal`).size).toBeLessThan(size);
  truncateSync(`${path}-wal`, size);
  await history.prune();
  expect(warnings).toEqual([expect.stringContaining("keeps")]);
  reader.run("ROLLBACK");
});

test.if(process.platform !== "win32")(
  "an account whose file cannot be read is left out with one warning, the others stay",
  () => {
    const folder = join(temporaryFolder(), "accounts");
    const { logger, lines } = keptLog();
    const store = openAccountStore(folder, logger);
    for (const [at, account] of demoAccounts().slice(0, 2).entries()) store.add(savedFrom(account, at));
    const [name] = [...new Bun.Glob("**/octo*").scanSync(folder)];
    if (asRoot) chownSync(join(folder, name!), 12_345, 12_345);
    else chmodSync(join(folder, name!), 0);
    for (let turn = 0; turn < 3; turn++) expect(store.load().map(({ login }) => login)).toEqual(["work-demo"]);
    expect(lines).toHaveLength(1);
    expect(lines[0]).not.toContain("ghu_");
  },
);

test("four started in the same instant with one folder all serve, and each row of each is there once", async () => {
  await using github = scriptedGithub();
  github.signIn("octo-demo");
  const commands = Array.from({ length: 4 }, () => run(["start", "--json", "--port", "0"], { env: github.env }));
  try {
    const urls = (await Promise.all(commands.map((command) => command.ready()))).map(({ url }) => url);
    expect(new Set(urls).size).toBe(4);
    const ids = await Promise.all(
      urls.flatMap((url) =>
        Array.from({ length: 25 }, async () => {
          const response = await ask(url);
          await response.arrayBuffer();
          expect(response.status).toBe(200);
          return response.headers.get("x-request-id");
        }),
      ),
    );
    const changes = urls.map((url, at) =>
      postJson(`${url}/api/admin/config`, { modelAliases: { [`alias-${at}`]: "gpt-5-mini" } }).then(
        ({ status }) => status,
      ),
    );
    for (const status of await Promise.all(changes)) expect([200, 409]).toContain(status);
    JSON.parse(readFileSync(join(github.data, "config.json"), "utf8"));
    for (const url of urls) {
      const listed = async () =>
        ((await (await fetch(`${url}/api/admin/requests?limit=200`)).json()) as { items: { request_id: string }[] })
          .items;
      await until(async () => (await listed()).length >= 100, "every row is written");
      expect((await listed()).map(({ request_id }) => request_id).sort()).toEqual(ids.map(String).sort());
    }
    for (const command of commands) expect(command.stderr()).not.toMatch(/SQLITE_BUSY|database is locked|error /);
  } finally {
    for (const command of commands) await command[Symbol.asyncDispose]();
  }
});
