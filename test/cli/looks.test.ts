/** Scenario: the looks of `doctor --deep`: what its report says of the upstream's answers. */
import { describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { deepLooks } from "../../src/cli/deep/looks";
import type { Looks } from "../../src/cli/deep/take-looks";
import { type DemoAccount, demoAccounts, quotas } from "../../src/demo/accounts";
import type { DemoOptions } from "../../src/demo/demo";
import { autoAccounts } from "../support/auto-accounts";
import { type ListName, lists } from "../support/drifted";
import { inProcess } from "../support/in-process";
import { atTerminal } from "../support/terminal";
import { type Github, scriptedGithub } from "./bench";

const [octo, , plus] = demoAccounts() as [DemoAccount, DemoAccount, DemoAccount];

async function report(options: DemoOptions, login: string, more: string[] = [], prepare = (_: Github) => {}) {
  const github = scriptedGithub(options);
  github.signIn(login);
  prepare(github);
  const file = join(github.home, "mine.md");
  const { stderr } = await inProcess(["doctor", "--deep", "--report", file, "--yes", ...more], github.env);
  const text = readFileSync(file, "utf8");
  return { github, stderr, text, looks: looksIn(text) };
}

const looksIn = (text: string): Looks => JSON.parse(/^```json\n(.*?)^```$/ms.exec(text)![1]!);

const foundIn = (looks: Looks, name: string): Record<string, unknown> => {
  const look = looks[name];
  return look && "found" in look ? look.found : { skipped: look?.skipped };
};

describe("a report of the upstream's answers", () => {
  test.each<[ListName, string]>([
    ["A", "is_premium"],
    ["B", "cache_price"],
    ["C", "cache_read_price"],
  ])("takes every look that has a model in list %s, and says what the others cost", async (list, name) => {
    const account: DemoAccount = list === "A" ? octo : { ...plus, quota: quotas.credits() };
    const options = { ...lists[list], accounts: [structuredClone(account)] };
    const result = await report(options, account.login, ["--budget", "1000"]);
    await using _ = result.github;
    const { looks, text, stderr } = result;
    expect(Object.keys(looks)).toEqual(deepLooks.map((look) => look.name));
    const prices = foundIn(looks, "prices");
    expect([...(prices.billing_names as string[]), ...(prices.default_names as string[])]).toContain(name);
    expect(foundIn(looks, "lists")).toMatchObject({ lists: 3, differing: 0 });
    expect(foundIn(looks, "identity")).toMatchObject({ models_status: 200, is_host_stated: true, host: "another" });
    expect(foundIn(looks, "counting")).toMatchObject({ status: expect.any(Number) });
    expect(foundIn(looks, "fields")).toMatchObject({ safeguards_status: expect.any(Number) });
    expect(foundIn(looks, "quota").header_names).toContain("rem");
    if (list === "C") {
      expect(foundIn(looks, "thinking")).toMatchObject({ updates_status: 400 });
      expect(foundIn(looks, "compaction")).toMatchObject({ status: 200 });
      expect(foundIn(looks, "always-thinking")).toMatchObject({ omitted_status: 400, off_status: 400 });
      expect(foundIn(looks, "forced-choice")).toHaveProperty("opus_status");
      expect(foundIn(looks, "gemini-schemas")).toHaveProperty("boolean_schema_status");
      expect(foundIn(looks, "claude-tools")).toHaveProperty("compact_status");
      expect(foundIn(looks, "system-text")).toEqual({ text_status: 200 });
      expect(foundIn(looks, "too-large")).toMatchObject({ status: 413, is_parse_failure: true });
      expect(foundIn(looks, "warnings")).toMatchObject({ price_categories: ["high", "low", "medium", "very_high"] });
    }
    expect(text).not.toMatch(/gh[uo]_|tid=|-demo|Answer with/);
    expect(/^```json.*/ms.exec(text)![0]).not.toContain("127.0.0.1");
    expect(stderr).toMatch(/calls? to [\w.-]+\) It costs/);
  });

  test("a report of the upstream's answers takes only free looks without a budget, and says so of the others", async () => {
    const { github, looks } = await report({ generation: "C", accounts: [structuredClone(plus)] }, plus.login);
    await using _ = github;
    expect(foundIn(looks, "fields")).toEqual({ skipped: "not within the budget" });
    expect(foundIn(looks, "prices")).not.toHaveProperty("skipped");
    const posted = github.demo.journal.filter(
      ({ path, body }) => JSON.stringify(body ?? "").includes("safeguards") && path !== "",
    );
    expect(posted).toEqual([]);
  });

  test("a report of the upstream's answers takes no look beyond the budget", async () => {
    const options: DemoOptions = { generation: "A", accounts: [structuredClone(octo)] };
    // A call to the cheapest Claude is 0.33 premium requests.
    const { github, looks } = await report(options, octo.login, ["--budget", "0.5"]);
    await using _ = github;
    expect(foundIn(looks, "billing-line")).toHaveProperty("status");
    expect(foundIn(looks, "fields")).toEqual({ skipped: "not within the budget" });
  });

  test("a person answers for each look that costs something, and Ctrl-C declines all that are left", async () => {
    await using github = scriptedGithub({ generation: "C", accounts: [structuredClone(plus)] });
    github.signIn(plus.login);
    await using person = atTerminal(["doctor", "--deep", "--report", "mine.md"], github.env, github.home);
    await person.shows("Go on?");
    person.type("y\r");
    await person.shows(/billing line refused\?[\s\S]*Look\? \[y\/N\]/);
    person.type("y\r");
    await person.shows(/compacted by \/responses\?[\s\S]*Look\? \[y\/N\]/);
    person.type("\x03");
    expect(await person.exited).toBeLessThan(2);
    const looks = looksIn(readFileSync(join(github.home, "mine.md"), "utf8"));
    expect(foundIn(looks, "prices")).not.toHaveProperty("skipped");
    expect(foundIn(looks, "billing-line")).toHaveProperty("status");
    for (const name of ["compaction", "server-tools", "fields", "quota"])
      expect([name, foundIn(looks, name)]).toEqual([name, { skipped: "declined" }]);
  });

  test("a report of the upstream's answers asks without a model where the plan has Auto only", async () => {
    const { free } = autoAccounts();
    const { github, looks } = await report({ accounts: [structuredClone(free)] }, free.login, ["--budget", "10"]);
    await using _ = github;
    expect(foundIn(looks, "unnamed")).toMatchObject({ status: 200, names_model: true });
    expect(foundIn(looks, "auto")).toMatchObject({ picked: 0, plan: "free", sku: "free_limited_copilot" });
  });

  test("a report of the upstream's answers says in which forms the account may ask for Auto", async () => {
    const { pro } = autoAccounts();
    const { github, looks } = await report({ accounts: [structuredClone(pro)] }, pro.login);
    await using _ = github;
    expect(foundIn(looks, "auto")).toMatchObject({
      ...{ auto_status: 200, auto_object_status: 200, auto_tier_status: 200, meta_status: 200 },
      ...{ auto_boolean_status: 400, auto_boolean_code: "invalid_multi_turn" },
      tiers: ["efficiency", "balance", "intelligence"],
    });
  });

  test("a report of the upstream's answers names no model that is not public, and no text that a refusal quotes", async () => {
    const secret = { id: "acme-secret-model", custom_model: true, supported_endpoints: ["/acme/secret path"] };
    const error = { error: { code: "denied", message: 'Not for "Acme Corporation".' } };
    let lists = 0;
    const options: DemoOptions = { generation: "C", accounts: [structuredClone(octo)] };
    const { github, text } = await report(options, octo.login, [], ({ demo }) =>
      demo.intercept(
        "/models",
        () =>
          ++lists < 4
            ? Response.json({ data: [{ ...secret, capabilities: { type: "chat" } }] })
            : Response.json(error, { status: 403 }),
        20,
      ),
    );
    await using _ = github;
    expect(text).toContain('"models_code": "denied"');
    expect(text).not.toMatch(/acme/i);
  });
});
