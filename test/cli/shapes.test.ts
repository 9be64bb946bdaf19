/** The report of `doctor --deep --report`: what the upstream's answers look like, and how another machine reads it. */
import { describe, expect, test } from "bun:test";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { readShapes, type Shapes } from "../../src/cli/deep/shapes";
import { type DemoAccount, demoAccounts, quotas } from "../../src/demo/accounts";
import type { DemoOptions } from "../../src/demo/demo";
import { assumptions, lookNames } from "../../src/upstream/changes/assumptions";
import { autoAccounts } from "../support/auto-accounts";
import { run } from "../support/command";
import { type ListName, lists } from "../support/drifted";
import { type Github, scriptedGithub } from "./bench";

const [octo, , plus] = demoAccounts() as [DemoAccount, DemoAccount, DemoAccount];

async function report(options: DemoOptions, login: string, ...more: string[]) {
  const github = scriptedGithub(options);
  github.signIn(login);
  const command = run(["doctor", "--deep", "--report", "mine.md", "--yes", ...more], {
    env: github.env,
    cwd: github.home,
  });
  await command.exited;
  const stderr = command.stderr();
  await command[Symbol.asyncDispose]();
  const file = join(github.home, "mine.json");
  const text = existsSync(file) ? readFileSync(file, "utf8") : "";
  return { github, stderr, file, text, shapes: text === "" ? undefined : readShapes(text, file) };
}

const foundIn = (shapes: Shapes | undefined, name: (typeof lookNames)[number]): Record<string, unknown> => {
  const look = shapes?.looks[name];
  return look && "found" in look ? look.found : { skipped: look?.skipped };
};

async function compare(github: Github, file: string) {
  await using command = run(["doctor", "--compare", file], { env: github.env, cwd: github.home });
  const code = await command.exited;
  return { code, stdout: command.stdout(), stderr: command.stderr() };
}

describe("a report of the upstream's answers", () => {
  test.concurrent.each<[ListName, string]>([
    ["A", "is_premium"],
    ["B", "cache_price"],
    ["C", "cache_read_price"],
  ])(
    "takes every look that has a model in list %s, is shown before it is saved, and can be compared",
    async (list, name) => {
      const account: DemoAccount = list === "A" ? octo : { ...plus, quota: quotas.credits() };
      const result = await report(
        { ...lists[list], accounts: [structuredClone(account)] },
        account.login,
        "--budget",
        "1000",
      );
      await using github = result.github;
      const { shapes, text, stderr, file } = result;
      expect(Object.keys(shapes!.looks)).toEqual(expect.arrayContaining([...lookNames]));
      const prices = foundIn(shapes, "prices");
      expect([...(prices.billing_names as string[]), ...(prices.default_names as string[])]).toContain(name);
      expect(foundIn(shapes, "lists")).toMatchObject({ lists: 3, differing: 0 });
      expect(foundIn(shapes, "identity")).toMatchObject({ models_status: 200, is_host_stated: true, host: "another" });
      expect(foundIn(shapes, "counting")).toMatchObject({ status: expect.any(Number) });
      expect(foundIn(shapes, "fields")).toMatchObject({ safeguards_status: expect.any(Number) });
      expect(foundIn(shapes, "quota").header_names).toContain("rem");
      if (list === "C") {
        expect(foundIn(shapes, "thinking")).toMatchObject({ updates_status: 400 });
        expect(foundIn(shapes, "compaction")).toMatchObject({ status: 200 });
      }
      expect(text).not.toMatch(/gh[uo]_|tid=|-demo|127\.0\.0\.1|Answer with/);
      // The report was shown before it was saved.
      expect(stderr).toContain(text.trim().split("\n")[1]!);
      expect(stderr).toContain("Send it to the project's issues");
      expect(stderr).toMatch(/calls? to [\w.-]+\) It costs/);
      const { code, stdout } = await compare(github, file);
      expect(stdout).toContain("assumptions could be compared");
      expect(stdout).not.toContain("Cached tokens are priced");
      // The older lists of the demo are not as strict as this version assumes the upstream of today to be.
      if (list === "C") expect([code, stdout]).toEqual([0, expect.stringContaining("all fit")]);
    },
  );

  test.concurrent("a report of the upstream's answers takes only free looks without a budget, and says so of the others", async () => {
    const { github, shapes } = await report({ generation: "C", accounts: [structuredClone(plus)] }, plus.login);
    await using _ = github;
    expect(foundIn(shapes, "fields")).toEqual({ skipped: "not within the budget" });
    expect(foundIn(shapes, "prices")).not.toHaveProperty("skipped");
    const posted = github.demo.journal.filter(
      ({ path, body }) => JSON.stringify(body ?? "").includes("safeguards") && path !== "",
    );
    expect(posted).toEqual([]);
  });

  test.concurrent("a report of the upstream's answers takes no look beyond the budget", async () => {
    const options: DemoOptions = { generation: "A", accounts: [structuredClone(octo)] };
    // A call to the cheapest Claude is 0.33 premium requests.
    const { github, shapes } = await report(options, octo.login, "--budget", "0.5");
    await using _ = github;
    expect(foundIn(shapes, "billing-line")).toHaveProperty("status");
    expect(foundIn(shapes, "fields")).toEqual({ skipped: "not within the budget" });
  });

  test.concurrent("a report of the upstream's answers asks without a model where the plan has Auto only", async () => {
    const { free } = autoAccounts();
    const { github, shapes } = await report({ accounts: [structuredClone(free)] }, free.login, "--budget", "10");
    await using _ = github;
    expect(foundIn(shapes, "unnamed")).toMatchObject({ status: 200, names_model: true });
    expect(foundIn(shapes, "auto")).toMatchObject({ picked: 0, plan: "free", sku: "free_limited_copilot" });
  });

  test.concurrent("a report of the upstream's answers names no model that is not public, and no text that a refusal quotes", async () => {
    const github = scriptedGithub({ generation: "C", accounts: [structuredClone(octo)] });
    await using _ = github;
    github.signIn("octo-demo");
    const secret = { id: "acme-secret-model", custom_model: true, supported_endpoints: ["/acme/secret path"] };
    const error = { error: { code: "denied", message: 'Not for "Acme Corporation".' } };
    let lists = 0;
    github.demo.intercept(
      "/models",
      () =>
        ++lists < 4
          ? Response.json({ data: [{ ...secret, capabilities: { type: "chat" } }] })
          : Response.json(error, { status: 403 }),
      20,
    );
    const command = run(["doctor", "--deep", "--report", "mine.md", "--yes"], { env: github.env, cwd: github.home });
    await command.exited;
    await command[Symbol.asyncDispose]();
    const text = readFileSync(join(github.home, "mine.json"), "utf8");
    expect(text).toContain('"models_code": "denied"');
    expect(text).not.toMatch(/acme/i);
  });
});

describe("a comparison", () => {
  test.concurrent("prints the rows that differ, and only those", async () => {
    await using github = scriptedGithub();
    const file = join(github.home, "other.json");
    const looks = {
      prices: { found: { default_names: ["input_price", "cached_input_price"], price_type: "number" } },
      counting: { found: { status: 200, names: ["input_tokens"] } },
      thinking: { skipped: "declined" },
    };
    writeFileSync(file, JSON.stringify({ format: "dragoman-shapes-1", dragoman: "9.9.9", day: "2026-12-01", looks }));
    const { code, stdout } = await compare(github, file);
    expect(code).toBe(1);
    expect(stdout).toContain("cache_read_price");
    expect(stdout).toContain("default_names: input_price cached_input_price");
    expect(stdout).not.toContain("count_tokens");
    expect(stdout).toContain(`3 of ${assumptions.length} assumptions could be compared; 1 differ.`);
  });

  test.concurrent.each([
    ["no report", "{}"],
    ["no JSON", "hello"],
  ])("a comparison with a file that is %s says so", async (_, text) => {
    await using github = scriptedGithub();
    const file = join(github.home, "other.json");
    writeFileSync(file, text);
    const { code, stderr } = await compare(github, file);
    expect([code, stderr]).toEqual([2, expect.stringContaining("is no report of")]);
  });
});

test("every assumption names a look that there is, a source and a month", () => {
  expect(assumptions.length).toBeGreaterThanOrEqual(20);
  for (const { look, source, date, about } of assumptions) {
    expect(lookNames).toContain(look);
    expect([source === "", /^20\d\d-\d\d$/.test(date), about.length > 0]).toEqual([false, true, true]);
  }
});
