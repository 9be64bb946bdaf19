/**
 * Rows: the program as a process of its own, source or executable, between the official packages and the scripted
 * upstream: what a bundler could break (handlers, lazy parts, files, the worker), each client dialect with each
 * upstream dialect.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { demoAccounts, quotas } from "../../../src/demo/accounts";
import { drive } from "../../../src/deploy/smoke";
import { codecs } from "../../../src/dialects/codecs";
import { dialects } from "../../../src/dialects/hub/conversation";
import { type Github, scriptedGithub } from "../../cli/bench";
import { offerOnly } from "../../support/catalogue";
import { type Answer, type Client, clients, refusalOf } from "../../support/clients";
import { type Command, program, run } from "../../support/command";
import { dialectAt, type Tap, tap } from "../../support/log-capture";
import { grammars } from "../../support/read-reply";
import { scenarios, stopWord } from "../../support/scenarios";
import { until } from "../../support/until";

// Each test starts processes, and the machine may be busy.
const upstreams = [
  ["gpt-5-mini", "/chat/completions"],
  ["gpt-5.3-codex", "/responses"],
  ["claude-sonnet-4.6", "/v1/messages"],
] as const;

let github: Github;
let upstream: Tap;
let server: Command;
let url: string;

beforeAll(async () => {
  const [account] = demoAccounts();
  github = scriptedGithub({ accounts: [{ ...account!, quota: quotas.unlimited() }] });
  upstream = tap(github.demo);
  offerOnly(github.demo, Object.fromEntries(upstreams.map(([model, endpoint]) => [model, [endpoint]])));
  github.signIn(account!.login);
  server = run(["start", "--json", "--port", "0"], { env: github.env });
  ({ url } = await server.ready());
});
afterAll(async () => {
  await server[Symbol.asyncDispose]();
  await github[Symbol.asyncDispose]();
});

interface Row {
  request_id: string;
  dropped: string[];
  http_status: number;
}

let lastRow = "";

/** The row of the exchange that has just ended. */
async function newestRow(): Promise<Row> {
  let row: Row | undefined;
  await until(async () => {
    const { items } = (await (await fetch(`${url}/api/admin/requests?limit=1`)).json()) as { items: Row[] };
    [row] = items;
    return row !== undefined && row.request_id !== lastRow;
  }, "the row is written");
  lastRow = row!.request_id;
  return row!;
}

describe.each([...dialects])("a client of %s", (dialect) => {
  let client: Client;
  beforeAll(() => {
    client = clients[dialect](url);
  });

  describe.each(upstreams)("and %s at %s", (model, endpoint) => {
    // Each scenario in one of the two modes; both are asked for by every pair.
    test.each(scenarios.map(([name, play], index) => [name, index % 2 ? "full" : "stream", play] as const))(
      "%s, %s",
      async (_name, mode, play) => {
        let row: Row;
        await play({
          client: dialect,
          upstream: dialectAt[endpoint]!,
          showsThinking: !model.startsWith("gpt-") || (endpoint === "/responses" && dialect !== "chat"),
          async ask(question, end): Promise<Answer> {
            const answer = await client[mode](question, model);
            if (mode === "stream") grammars[dialect](client.frames(), codecs[dialect].decodeRequest(client.sent()));
            expect(stopWord(dialect, end, dialectAt[endpoint]!)).toContain(answer.stop);
            expect(upstream.seen().path).toBe(endpoint);
            row = await newestRow();
            expect(row.http_status).toBe(200);
            return answer;
          },
          async refused(question) {
            const refusal = await refusalOf(client[mode](question, model));
            await newestRow();
            return refusal;
          },
          seen: upstream.seen,
          dropped: () => row.dropped,
        });
      },
    );
  });
});

test("an editor finds every part in it", async () => {
  await using decoy = run(["--version"]);
  await decoy.exited;
  await drive(program, { cwd: decoy.home, env: { PATH: process.env.PATH, HOME: decoy.home } });
});

test.if(process.platform === "linux")("process lists show what runs under its name", async () => {
  const words = (await Bun.file(`/proc/${server.process.pid}/cmdline`).text()).split("\0");
  expect(words.join(" ")).toMatch(program.length === 1 ? /^dragoman start / : /main\.ts start /);
});
