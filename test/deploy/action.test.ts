/** Scenario: the action for jobs of GitHub Actions: its own steps, run as a runner does, with the demo as GitHub. */
import { expect, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { engines } from "../../package.json";
import { startDemo } from "../../src/demo/demo";
import { temporaryFolder } from "../support/temporary-folder";
import { until } from "../support/until";

interface Step {
  id: string;
  if?: string;
  run: string;
  env?: Record<string, string>;
}

const folder = join(import.meta.dir, "../../.github/actions/dragoman");
const action = Bun.YAML.parse(readFileSync(join(folder, "action.yml"), "utf8")) as {
  inputs: Record<string, { default?: string; required?: boolean }>;
  runs: { steps: Step[] };
};

/** A job with one step, the action. Packages are there already. */
async function runJob(inputs: { run: string; credits: string }, token = "ghs_DEMOjobDEMOjobDEMOjob0001") {
  const demo = startDemo({ pace: 0 });
  demo.accounts.push({ ...demo.accounts[0]!, login: "acme", githubToken: "ghs_DEMOjobDEMOjobDEMOjob0001" });
  const temp = temporaryFolder();
  const [output, summary] = [join(temp, "output"), join(temp, "summary")];
  for (const file of [output, summary]) writeFileSync(file, "");
  const outputs = () =>
    Object.fromEntries(
      readFileSync(output, "utf8")
        .split("\n")
        .map((line) => line.split("=")),
    );
  const filled = (text: string) =>
    text.replaceAll(/\$\{\{ (\S+) \}\}/g, (_, name: string) =>
      name.startsWith("inputs.")
        ? ({ token, ...inputs } as Record<string, string>)[name.slice(7)]!
        : (outputs()[name.replace("steps.start.outputs.", "")] ?? ""),
    );
  const log: string[] = [];
  let failed = false;
  for (const step of action.runs.steps.filter(({ id }) => id !== "packages")) {
    if (step.if ? !outputs().url : failed) continue;
    const env = Object.fromEntries(Object.entries(step.env ?? {}).map(([name, value]) => [name, filled(value)]));
    const run = Bun.spawn(["bash", "-e", "-o", "pipefail", "-c", filled(step.run)], {
      env: {
        ...{ PATH: process.env.PATH, HOME: temp, RUNNER_TEMP: temp, GITHUB_ACTION_PATH: folder },
        ...{ GITHUB_OUTPUT: output, GITHUB_STEP_SUMMARY: summary, DRAGOMAN_GITHUB_API_URL: demo.url },
        ...env,
      },
      stdout: "pipe",
      stderr: "pipe",
    });
    log.push(await new Response(run.stdout).text(), await new Response(run.stderr).text());
    failed ||= (await run.exited) !== 0;
  }
  const pid = Number(outputs().pid);
  if (pid) await until(() => !isRunning(pid), "the server has stopped");
  await demo.stop();
  const result = { failed, log: log.join(""), summary: readFileSync(summary, "utf8") };
  return result;
}

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

const ask = (model: string) =>
  `curl --silent --show-error "$ANTHROPIC_BASE_URL/v1/messages" --json '{"model": "${model}", "max_tokens": 9, "messages": [{"role": "user", "content": "Hi"}]}'`;

test("a job's command is served within its budget, and its bill stands in the summary though it fails", async () => {
  const twice = [ask, ask].map((each) => each("claude-sonnet-4.6")).join("\n");
  const { failed, log, summary } = await runJob({ credits: "0.01", run: `${twice}\nexit 3` });
  expect(failed).toBe(true);
  expect(log).toContain('"type":"message"');
  expect(log).toMatch(/"type":"error".*budget `job` is used up/);
  expect(summary).toMatch(
    /\| claude-sonnet-4\.6 \| 2 \| 1 \| \d+ \| \d+ \| [\d.]+ AI credits \|\n\| \*\*all\*\* \| 2 \|/,
  );
  expect(summary).toContain("0.01 AI credits were allowed, and are used up.");
  expect(log + summary).not.toContain("ghs_");
});

test("a token without the right ends the job before its command, with the reason", async () => {
  const { failed, log, summary } = await runJob({ credits: "5", run: "echo served" }, "ghs_DEMOnobodyDEMOnobodyDEMO01");
  expect(failed).toBe(true);
  expect(log).toMatch(/^::error title=dragoman::.*its job has ended, or the organization's policy/m);
  expect([log, summary]).toEqual([expect.not.stringMatching(/served|ghs_/), ""]);
});

test("names the Bun that we are made for, and takes no secret beside the token", () => {
  for (const { run } of action.runs.steps)
    for (const [, bun] of run.matchAll(/bun@(\S+)/g)) expect(`>=${bun}`).toBe(engines.bun);
  expect(Object.keys(action.inputs)).toEqual(["run", "credits", "token"]);
});
