/**
 * What the action of `.github/actions/dragoman` does in a job of GitHub Actions: `start` starts a server on the job's token with a
 * budget, `bill` writes what the job cost into its summary and stops the server. The runner's variables are those that GitHub
 * documents ("Store information in variables", "Workflow commands", 2026-11).
 */
import { appendFileSync, mkdtempSync, openSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { statisticsSchema } from "../admin/api/schemas";
import { formatCount } from "../lib/format";
import { parseJson } from "../lib/json";
import { costInWords } from "../lib/money";
import { budgetListSchema } from "../people/budgets/budget-list";

const startMs = 30_000;

/** Leaves a server running for the next steps of the job. @throws Error with what is wrong, for the job's log */
async function start(): Promise<void> {
  const limit = Number(variable("CREDITS"));
  if (!(limit > 0)) throw new Error("The input `credits` must be a number above 0.");
  const home = mkdtempSync(join(variable("RUNNER_TEMP"), "dragoman-"));
  const budgets = [{ name: "job", unit: "credits", limit, per: "month" }];
  writeFileSync(join(home, "config.json"), JSON.stringify({ budgets }), { mode: 0o600 });
  const [ready, log] = [join(home, "ready.json"), join(home, "server.log")];
  const main = join(import.meta.dir, "../main.ts");
  const server = Bun.spawn(
    [process.execPath, "--no-env-file", main, "start", "--port=0", "--json", "--no-update-notice"],
    {
      env: { ...process.env, DRAGOMAN_HOME: home },
      stdio: ["ignore", openSync(ready, "w", 0o600), openSync(log, "w", 0o600)],
      detached: true,
    },
  );
  server.unref();
  for (const begun = performance.now(); performance.now() - begun < startMs; await Bun.sleep(50)) {
    const told = z.object({ url: z.string() }).safeParse(parseJson(readFileSync(ready, "utf8")));
    if (told.success) return await lead(told.data.url, server.pid);
    if (server.exitCode !== null) break;
  }
  server.kill();
  throw new Error(`The server did not start. ${readFileSync(log, "utf8")}`);
}

/** The job's token is tried at once: the next step would say less clearly what is wrong with it. */
async function lead(url: string, pid: number): Promise<void> {
  const answer = await fetch(`${url}/v1/models`);
  if (!answer.ok) {
    process.kill(pid);
    const said = z.object({ error: z.object({ message: z.string() }) }).safeParse(parseJson(await answer.text()));
    throw new Error(said.success ? said.data.error.message : `The models could not be listed (${answer.status}).`);
  }
  appendFileSync(variable("GITHUB_OUTPUT"), `url=${url}\npid=${pid}\n`);
}

/** The bill by model, as Markdown. A job that cost nothing gets one too. */
async function bill(): Promise<void> {
  const url = variable("URL");
  const ask = async <Schema extends z.ZodType>(path: string, schema: Schema): Promise<z.output<Schema>> =>
    schema.parse(await (await fetch(`${url}/api/admin/${path}`)).json());
  const { groups, totals } = await ask("statistics?by=model", statisticsSchema);
  const { items } = await ask("budgets", budgetListSchema());
  const row = (name: string, { request_count, error_count, input_tokens, output_tokens, ...costs }: typeof totals) =>
    `| ${[name, request_count, error_count, input_tokens, output_tokens].map(cell).join(" | ")} | ${costInWords(costs) ?? "unknown"} |`;
  const [budget] = items;
  const left = budget && `${budget.limit} AI credits were allowed${budget.exhausted ? ", and are used up" : ""}.`;
  const lines = [
    "### GitHub Copilot, by dragoman",
    "",
    "| model | requests | failed | tokens in | tokens out | cost |",
    "| --- | ---: | ---: | ---: | ---: | ---: |",
    ...groups.map((group) => row(group.key.upstream_model ?? "none", group)),
    row("**all**", totals),
    "",
    left ?? "",
    "",
  ];
  appendFileSync(variable("GITHUB_STEP_SUMMARY"), `${lines.join("\n")}\n`);
  process.kill(Number(variable("PID")));
}

const cell = (value: string | number | null) =>
  value === null ? "unknown" : typeof value === "number" ? formatCount(value) : value;

function variable(name: string): string {
  const value = process.env[name];
  if (!value) throw new Error(`${name} is not set: this runs in a job of GitHub Actions.`);
  return value;
}

try {
  await (process.argv[2] === "bill" ? bill() : start());
} catch (thrown) {
  // A workflow command: GitHub shows it beside the run. It ends with its line.
  const { message } = thrown as Error;
  process.stdout.write(`::error title=dragoman::${message.replaceAll("%", "%25").replaceAll("\n", "%0A")}\n`);
  process.exitCode = 1;
}
