/** Scenario: `dragoman doctor --deep` and `--report`, beyond `fixtures/sessions/deep.txt`: who is named, and who is asked. */
import { expect, test } from "bun:test";
import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import { namesIn } from "../../src/cli/deep/look-parts";
import { planCalls } from "../../src/cli/deep/plan";
import type { Looks } from "../../src/cli/deep/take-looks";
import type { DemoOptions } from "../../src/demo/demo";
import { readModel } from "../../src/proxy/upstream/models/model";
import { run } from "../support/command";
import { drifted } from "../support/drifted";
import { atTerminal } from "../support/terminal";
import { type Github, scriptedGithub } from "./bench";

async function signedIn(options: DemoOptions = {}): Promise<Github> {
  const github = scriptedGithub(options);
  github.signIn("octo-demo");
  return github;
}

test("the cheapest: free first, then by units or price, and a model of unknown price last", () => {
  const model = (id: string, billing?: object) =>
    readModel({ id, billing, capabilities: { type: "chat" }, supported_endpoints: ["/responses"] })!;
  const priced = (input_price: number) => ({
    token_prices: { batch_size: 1e6, default: { input_price, output_price: 9 } },
  });
  const pick = (...models: ReturnType<typeof model>[]) => planCalls(models).map((call) => call.model.id);
  expect(
    pick(model("dear", { is_premium: true, multiplier: 3 }), model("free", { is_premium: false, multiplier: 0 })),
  ).toEqual(["free"]);
  expect(pick(model("dear", priced(300)), model("cheap", priced(20)))).toEqual(["cheap"]);
  expect(
    pick(model("three", { is_premium: true, multiplier: 3 }), model("one", { is_premium: true, multiplier: 1 })),
  ).toEqual(["one"]);
});

test("names are reported in one order, without those that may be a person's words", () => {
  expect(namesIn({ usage: 1, "A name of somebody": 2, id: 3 })).toEqual(["id", "usage"]);
  expect(namesIn("usage")).toEqual([]);
});

/** In the home, where a report is written that has no other name. */
const doctor = async ({ env, home }: Github, args: string[], more: Record<string, string> = {}) => {
  await using command = run(["doctor", ...args], { env: { ...env, ...more }, cwd: home });
  return { code: await command.exited, stderr: command.stderr() };
};
const reportsIn = (home: string) => readdirSync(home).filter((name) => name.startsWith("dragoman-report-"));

test("a report of doctor has the checks and what the running server has seen, and nobody's name", async () => {
  await using github = await signedIn({ change: drifted("header") });
  writeFileSync(
    join(github.data, "config.json"),
    JSON.stringify({
      auth: { apiKeys: [{ name: "anna-of-sales", key: "client-key-canary-1" }] },
      providers: {
        skunkworks: { type: "chat", baseUrl: "https://llm.internal.example/v1", apiKey: "provider-canary" },
      },
    }),
  );
  using served = github.serve();
  const body = JSON.stringify({ model: "gpt-5-mini", messages: [{ role: "user", content: "prompt-canary" }] });
  const headers = { "x-api-key": "client-key-canary-1" };
  expect((await fetch(`${served.url}/v1/chat/completions`, { method: "POST", body, headers })).status).toBe(200);
  const env = {
    DRAGOMAN_METRICS_TOKEN: "metrics-token-canary",
    HTTP_PROXY: "http://someone:password-canary@proxy.internal.example:3128",
    NO_PROXY: "127.0.0.1",
  };
  const { stderr } = await doctor(github, ["--report"], env);
  const [name] = reportsIn(github.home);
  const file = join(github.home, name!);
  expect(stderr).toContain(`The report is in ${name}.`);
  expect(statSync(file).mode & 0o077).toBe(0);
  const text = readFileSync(file, "utf8");
  expect(text).toContain("| header | `x-copilot-mood` | chat | 1 |");
  expect(text).toContain("account account-1");
  expect(text).toMatch(/^\| warn \| .+ → .+ \|$/m);
  expect(text).toContain("`auth`, `providers`");
  expect(text).not.toMatch(/canary|someone|octo-demo|anna|skunkworks|internal\.example|gh[uo]_|tid=/);
  expect(text).not.toContain(github.home);
  if (hostname().length > 2) expect(text).not.toContain(hostname());
});

test("--deep always writes a report of what it found, each to a file of its own", async () => {
  await using github = await signedIn({ change: drifted("model-field") });
  for (let times = 0; times < 2; times++) expect((await doctor(github, ["--deep", "--yes"])).code).toBe(0);
  const written = reportsIn(github.home);
  expect(written).toHaveLength(2);
  for (const name of written) {
    const text = readFileSync(join(github.home, name), "utf8");
    expect(text).toContain("capabilities.supports.telepathy");
    expect(text).toContain("No server is running here");
    expect(text).toContain('"prices": {');
  }
});

/** What each look of a report found, or why it was not taken. */
const looksIn = (text: string): Looks => JSON.parse(/^```json\n(.*?)^```$/ms.exec(text)![1]!);

test("a person answers for each look that costs something, and Ctrl-C declines all that are left", async () => {
  await using github = await signedIn({ generation: "C" });
  await using person = atTerminal(["doctor", "--deep", "--report", "mine.md"], github.env, github.home);
  await person.shows("Go on?");
  person.type("y\r");
  await person.shows(/billing line refused\?[\s\S]*Look\? \[y\/N\]/);
  person.type("y\r");
  await person.shows(/compacted by \/responses\?[\s\S]*Look\? \[y\/N\]/);
  person.type("\x03");
  expect(await person.exited).toBeLessThan(2);
  const looks = looksIn(readFileSync(join(github.home, "mine.md"), "utf8"));
  expect(looks).toMatchObject({ prices: { found: {} }, "billing-line": { found: { status: expect.any(Number) } } });
  for (const name of ["compaction", "server-tools", "fields", "quota"])
    expect([name, looks[name]]).toEqual([name, { skipped: "declined" }]);
});

test("a report of the upstream's answers names no model that is not public, and no text that a refusal quotes", async () => {
  await using github = await signedIn({ generation: "C" });
  const secret = { id: "acme-secret-model", custom_model: true, supported_endpoints: ["/acme/secret path"] };
  const list = { data: [{ ...secret, capabilities: { type: "chat" } }] };
  const error = { error: { code: "denied", message: 'Not for "Acme Corporation".' } };
  let lists = 0;
  const answer = () => (++lists < 4 ? Response.json(list) : Response.json(error, { status: 403 }));
  github.demo.intercept("/models", answer, 20);
  await doctor(github, ["--deep", "--report", "mine.md", "--yes"]);
  const text = readFileSync(join(github.home, "mine.md"), "utf8");
  expect(text).toContain('"models_code": "denied"');
  expect(text).not.toMatch(/acme/i);
});
