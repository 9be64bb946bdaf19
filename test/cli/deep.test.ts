/**
 * Scenario: `dragoman doctor --deep` and `--report`: whether this version fits the upstream of today, and a file that
 * says so.
 */
import { describe, expect, test } from "bun:test";
import { readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { hostname } from "node:os";
import { join } from "node:path";
import type { Finding } from "../../src/cli/checks/check";
import { namesIn } from "../../src/cli/deep/look-parts";
import { planCalls } from "../../src/cli/deep/plan";
import type { DemoOptions } from "../../src/demo/demo";
import { readModel } from "../../src/proxy/upstream/models/model";
import { run } from "../support/command";
import { type DriftWay, drifted } from "../support/drifted";
import { inProcess } from "../support/in-process";
import { type Github, scriptedGithub } from "./bench";

async function signedIn(options: DemoOptions = {}): Promise<Github> {
  const github = scriptedGithub(options);
  github.signIn("octo-demo");
  return github;
}

async function deep(github: Github, ...more: string[]) {
  const { code, stdout, stderr } = await inProcess(
    ["doctor", "--json", "--deep", "--report", join(github.home, `${crypto.randomUUID()}.md`), ...more],
    github.env,
  );
  const checks = stdout === "" ? [] : (JSON.parse(stdout) as { checks: Finding[] }).checks;
  const asked = checks.filter(({ name }) => /^(?:GET|POST) \//.test(name));
  return { code, stderr, checks, asked, of: (name: string) => asked.find((each) => each.name === name)! };
}

describe("an upstream that is as it is known", () => {
  test("each endpoint is asked once, with the cheapest model, and all is OK", async () => {
    await using github = await signedIn();
    const { stderr, asked } = await deep(github, "--yes");
    expect(asked.map(({ name, state }) => [name, state])).toEqual([
      ["GET /models", "ok"],
      ["POST /chat/completions", "ok"],
      ["POST /responses", "ok"],
      ["POST /v1/messages", "ok"],
      ["POST /embeddings", "ok"],
    ]);
    const posts = github.demo.journal.filter(
      ({ method, path }) => method === "POST" && !/login|token|auto|session|images/.test(path),
    );
    expect(posts.map(({ path }) => path)).toEqual(["/chat/completions", "/responses", "/v1/messages", "/embeddings"]);
    expect(stderr).toContain("POST /chat/completions with gpt-5-mini: nothing");
    expect(stderr).toContain("POST /v1/messages with claude-haiku-4.5: at most 0.33 premium requests");
    expect(stderr).toContain("It costs at most 0.33 premium requests in all.");
  });

  test("it says what it costs before it asks, and asks nothing without a yes", async () => {
    await using github = await signedIn();
    const { code, stderr, checks } = await deep(github);
    expect([code, checks, readdirSync(github.home).filter((name) => name.endsWith(".md"))]).toEqual([2, [], []]);
    expect(stderr).toContain("This asks GitHub Copilot 4 times with the account octo-demo:");
    expect(stderr).toContain("add --yes");
    const paths = github.demo.journal.map(({ path }) => path);
    expect(paths.filter((path) => /completions|responses|messages|embeddings/.test(path))).toEqual([]);
  });

  test("with prices for tokens, the cheapest model of each endpoint is taken, and its price is said", async () => {
    await using github = await signedIn({ generation: "C" });
    const { stderr, asked } = await deep(github, "--yes");
    expect(asked.filter(({ state }) => state !== "ok")).toEqual([]);
    expect(stderr).toMatch(/POST \/v1\/messages with claude-[\w.-]+: at most 0\.\d+ AI credits/);
    expect(stderr).toMatch(/It costs at most 0\.\d+ AI credits in all\./);
  });

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
});

describe("an upstream that has changed", () => {
  const cases: [way: DriftWay, endpoint: string, state: Finding["state"], words: string[]][] = [
    ["event", "POST /responses", "warn", ["event response.mood.delta"]],
    ["event", "POST /v1/messages", "warn", ["event mood"]],
    ["member", "POST /chat/completions", "warn", ["member usage.mood_tokens"]],
    ["member", "POST /embeddings", "warn", ["member usage.mood_tokens"]],
    ["value", "POST /chat/completions", "warn", ["value choices.finish_reason=satisfied"]],
    ["value", "POST /v1/messages", "warn", ["value message_delta delta.stop_reason=satisfied"]],
    ["header", "POST /responses", "warn", ["header x-copilot-mood"]],
    ["model-field", "GET /models", "warn", ["field capabilities.supports.telepathy"]],
    ["no-usage", "POST /chat/completions", "fail", ["the number of tokens", "member uses"]],
    ["no-usage", "POST /v1/messages", "fail", ["the number of tokens"]],
  ];
  const [gone, ...seen] = [...new Set(cases.map(([way]) => way))].toReversed() as [DriftWay, ...DriftWay[]];

  test.concurrent.each([[seen], [[gone]]])("%j: it is named, at each endpoint that shows it", async (ways) => {
    await using github = await signedIn({ change: drifted(...ways) });
    const { code, of } = await deep(github, "--yes");
    for (const [, endpoint, state, words] of cases.filter(([way]) => ways.includes(way))) {
      expect([endpoint, of(endpoint).state]).toEqual([endpoint, state]);
      for (const word of words) expect(of(endpoint).message).toContain(word);
      expect(of(endpoint).message).not.toContain("calm");
      expect(of(endpoint).todo).toBe("Attach the report to an issue.");
    }
    expect(code).toBe(ways.includes("no-usage") ? 1 : 0);
  });

  test.concurrent("an endpoint that refuses, and its new code", async () => {
    await using github = await signedIn();
    const error = { error: { code: "moon_phase_exceeded", message: "Wait for the sun." } };
    github.demo.intercept("/responses", () => Response.json(error, { status: 400 }));
    const { code, of } = await deep(github, "--yes");
    expect([code, of("POST /responses").state]).toEqual([1, "fail"]);
    expect(of("POST /responses").message).toContain("status 400: Wait for the sun.");
    expect(of("POST /responses").message).toContain("New: error code moon_phase_exceeded.");
    expect(of("POST /v1/messages").state).toBe("ok");
  });
});

test("names are reported in one order, without those that may be a person's words", () => {
  expect(namesIn({ usage: 1, "A name of somebody": 2, id: 3 })).toEqual(["id", "usage"]);
  expect(namesIn("usage")).toEqual([]);
});

describe("a report", () => {
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

  test("a report of doctor has no name from a budget, though the config's fault names it", async () => {
    await using github = await signedIn({});
    const budget = { name: "b", unit: "credits", limit: 1, per: "day", each: "member", limits: { rosalind: -1 } };
    writeFileSync(join(github.data, "config.json"), JSON.stringify({ budgets: [budget] }));
    const file = join(github.home, "mine.md");
    await inProcess(["doctor", "--report", file], github.env);
    const text = readFileSync(file, "utf8");
    expect(text).toContain("budgets[0].limits.chosen-name");
    expect(text).not.toContain("rosalind");
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

  test.each([
    ["there already", "mine.json", "mine.json exists already; name another file with --report <file>."],
    ["in a folder that is not there", "none/mine.md", "none/mine.md cannot be written (ENOENT)"],
    ["a folder", ".", " exists already"],
  ])("a file of the report that is %s is refused before anything is asked", async (_, name, refusal) => {
    await using github = await signedIn();
    writeFileSync(join(github.home, "mine.json"), "mine");
    const words = ["doctor", "--report", join(github.home, name), "--deep", "--yes"];
    const { code, stderr, stdout } = await inProcess(words, github.env);
    expect([code, stdout, stderr]).toEqual([2, "", expect.stringContaining(refusal)]);
    expect(github.demo.journal).toEqual([]);
    expect(readFileSync(join(github.home, "mine.json"), "utf8")).toBe("mine");
  });
});
