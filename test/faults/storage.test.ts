/** The disk fails: requests go on, and what can be kept is kept. */
import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { chmodSync, chownSync, mkdirSync, mkdtempSync, rmSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openRegistry } from "../../src/accounts/registry";
import { openHistory } from "../../src/history/history";
import { createLogger } from "../../src/logger";
import { entry } from "../support/entries";
import { startProxy, until } from "../support/proxy";

const asRoot = process.getuid?.() === 0;
const folderFor = () => mkdtempSync(join(tmpdir(), "dragoman-"));

/** A disk of its own, small enough to fill; undefined where none may be made. */
function smallDisk(at: string, kilobytes: number): boolean {
  if (process.platform !== "linux" || !asRoot) return false;
  return Bun.spawnSync(["mount", "-t", "tmpfs", "-o", `size=${kilobytes}k,mode=0700`, "tmpfs", at], {
    stderr: "ignore",
  }).success;
}

test("S01: a full disk costs no request; rows wait, and are written when there is room again", async () => {
  const disk = folderFor();
  const mounted = smallDisk(disk, 1024);
  try {
    if (!mounted) return;
    const filler = join(disk, "filler");
    await using proxy = await startProxy({ env: { DRAGOMAN_HOME: join(disk, "data") } });
    const ask = () =>
      proxy.post("/v1/chat/completions", { model: "gpt-5-mini", messages: [{ role: "user", content: "Hello" }] });
    expect((await ask()).status).toBe(200);
    proxy.rows();
    try {
      for (let size = 1024 * 1024; size > 512; size /= 2)
        try {
          writeFileSync(filler, new Uint8Array(size), { flag: "a" });
        } catch {
          // No room for so much at once.
        }
      for (let turn = 0; turn < 400; turn++) expect((await ask()).status).toBe(200);
      await until(() => proxy.app.history.degraded, 3000);
      expect(await (await fetch(`${proxy.url}/health`)).json()).toMatchObject({ history: "degraded" });
      expect(proxy.lines.filter((line) => line.includes("history cannot be written")).length).toBeLessThan(3);
    } finally {
      rmSync(filler, { force: true });
    }
    await until(() => !proxy.app.history.degraded, 4000);
    proxy.app.history.flush();
    expect(proxy.app.history.count()).toBe(401);
  } finally {
    if (mounted) Bun.spawnSync(["umount", "-l", disk]);
    rmSync(disk, { recursive: true, force: true });
  }
}, 20_000);

test("S08: while another program reads for long, rows are written, and a log that grows is warned of", async () => {
  const folder = folderFor();
  const path = join(folder, "admin.sqlite");
  const warnings: string[] = [];
  const history = openHistory(path, {
    retentionDays: () => 14,
    maxRows: () => 1000,
    warn: (sentence) => void warnings.push(sentence),
    now: Date.now,
  });
  const reader = new Database(path);
  try {
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
  } finally {
    reader.close();
    history.close();
    rmSync(folder, { recursive: true, force: true });
  }
});

test.if(process.platform !== "win32")(
  "S15: an account whose file cannot be read is left out with one warning, the others stay",
  () => {
    const folder = folderFor();
    const lines: string[] = [];
    try {
      mkdirSync(join(folder, "accounts"), { mode: 0o700 });
      const registry = openRegistry(
        join(folder, "accounts"),
        createLogger(
          () => "info",
          (line) => void lines.push(line),
        ),
      );
      const saved = (login: string, addedAt: number) =>
        ({
          login,
          host: "github.com",
          app: "vscode",
          mode: "exchange",
          githubToken: `ghu_${login}_0123456789abcdef`,
          addedAt,
        }) as const;
      registry.add(saved("one", 1));
      registry.add(saved("two", 2));
      const [name] = [...new Bun.Glob("**/one*").scanSync(join(folder, "accounts"))];
      const file = join(folder, "accounts", name!);
      if (asRoot) chownSync(file, 12_345, 12_345);
      else chmodSync(file, 0);
      for (let turn = 0; turn < 3; turn++) expect(registry.load().map(({ login }) => login)).toEqual(["two"]);
      expect(lines).toHaveLength(1);
      expect(lines[0]).not.toContain("ghu_");
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  },
);
