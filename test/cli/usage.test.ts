/** `dragoman usage`: what is left, for a person and for a script. */
import { describe, expect, test } from "bun:test";
import { existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { quotas } from "../../src/upstream/demo/accounts";
import { run } from "../support/command";
import { type Github, scriptedGithub } from "./bench";

const start = ["start", "--json", "--port", "0"];

async function ended(args: string[], env: Record<string, string>) {
  await using command = run(args, { env });
  const code = await command.exited;
  return { code, stdout: command.stdout(), stderr: command.stderr() };
}

const quotaCalls = ({ demo }: Github) => demo.journal.filter(({ path }) => path === "/copilot_internal/user").length;

describe("what is left", () => {
  test("is asked of GitHub while no server runs", async () => {
    await using github = scriptedGithub();
    github.demo.accounts[0]!.quota = quotas.overage();
    github.signIn("octo-demo", "work-demo");
    const { code, stdout } = await ended(["usage"], { ...github.env, TZ: "America/New_York" });
    expect(code).toBe(0);
    const [head, first, second] = stdout.split("\n").map((line) => line.split(/ {2,}/));
    expect(head).toEqual(["account", "plan", "unit", "left", "resets", "state"]);
    expect(first!.slice(0, 4)).toEqual([
      "octo-demo",
      "individual",
      "premium requests",
      "0 of 300 (beyond that it is paid for: 12.5 so far)",
    ]);
    expect(first![4]).toMatch(/, (19|20):00 \S+$/);
    expect(second!.slice(3, 4)).toEqual(["∞"]);
  });

  test("is asked of the running server, with its client key, whatever port it has", async () => {
    await using github = scriptedGithub();
    github.signIn("octo-demo");
    writeFileSync(join(github.data, "config.json"), JSON.stringify({ auth: { apiKeys: ["k-0123456789"] } }));
    await using server = run(start, { env: github.env });
    const { url } = await server.ready();
    await fetch(`${url}/usage`, { headers: { "x-api-key": "k-0123456789" } });
    expect(quotaCalls(github)).toBe(1);
    const { stdout } = await ended(["usage", "--json"], github.env);
    expect(JSON.parse(stdout)).toMatchObject({ accounts: [{ id: "octo-demo", remaining: 217.34, state: "ready" }] });
    expect(quotaCalls(github)).toBe(1);

    const place = join(github.data, "running.json");
    expect(statSync(place).mode & 0o777).toBe(0o600);
    server.process.kill("SIGTERM");
    expect(await server.exited).toBe(0);
    expect(existsSync(place)).toBe(false);
  });

  test("a server that was killed is not waited for", async () => {
    await using github = scriptedGithub();
    github.signIn("octo-demo");
    await using server = run(start, { env: github.env });
    await server.ready();
    server.process.kill("SIGKILL");
    await server.exited;
    const place = join(github.data, "running.json");
    expect(existsSync(place)).toBe(true);
    for (const pid of [server.process.pid, process.pid]) {
      writeFileSync(place, JSON.stringify({ ...JSON.parse(readFileSync(place, "utf8")), pid }));
      expect((await ended(["usage"], github.env)).stdout).toContain("217.34 of 300");
    }
  });

  test("without an account says what to do", async () => {
    await using github = scriptedGithub();
    expect(await ended(["usage"], github.env)).toMatchObject({ code: 0, stdout: "" });
    expect((await ended(["usage", "--json"], github.env)).stdout).toBe('{"accounts":[]}\n');
  });

  test("a token of the environment comes first, as with the server", async () => {
    await using github = scriptedGithub();
    github.signIn("octo-demo");
    const env = { ...github.env, DRAGOMAN_GITHUB_TOKEN: github.demo.accounts[1]!.githubToken };
    const { stdout } = await ended(["usage", "--json"], env);
    expect(JSON.parse(stdout)).toMatchObject({ accounts: [{ id: "work-demo" }, { id: "octo-demo" }] });
  });
});
