/**
 * Scenario: signals: the first lets what runs end, the second does not, and one that means nothing here changes
 * nothing.
 */
import { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import { exampleModels } from "../../src/proxy/upstream/models/known-models";
import { listen } from "../../src/server";
import { scriptedGithub } from "../cli/bench";
import { postJson } from "../support/post-json";
import { startProxy } from "../support/proxy";
import { until } from "../support/until";

const bodies = {
  "/v1/chat/completions": (content: string) => ({ model: exampleModels.flash, messages: [{ role: "user", content }] }),
  "/v1/responses": (input: string) => ({ model: exampleModels.gpt, input }),
  "/v1/messages": (content: string) => ({
    model: "claude-sonnet-4.6",
    max_tokens: 999,
    messages: [{ role: "user", content }],
  }),
};
const paths = Object.keys(bodies) as (keyof typeof bodies)[];
const ended = {
  "/v1/chat/completions": "[DONE]",
  "/v1/responses": "response.completed",
  "/v1/messages": "message_stop",
};

const ask = (url: string, path: keyof typeof bodies, content: string) =>
  postJson(url + path, { ...bodies[path](content), stream: true });

/** A server with an account, as a process. */
async function started(within?: string[]) {
  const github = scriptedGithub({ pace: 10, generation: "C" });
  github.signIn("octo-demo");
  const command = github.start([], within);
  const { url } = await command.ready();
  return {
    ...{ github, command, url },
    async [Symbol.asyncDispose]() {
      await command[Symbol.asyncDispose]();
      await github[Symbol.asyncDispose]();
    },
  };
}

/** Four streams of each of the three dialects that have begun. */
const twelve = (url: string, content: string) =>
  Promise.all(
    Array.from({ length: 12 }, async (_, at) => {
      const path = paths[at % paths.length]!;
      return { path, text: (await ask(url, path, content)).text() };
    }),
  );

test("a request that ends too slowly for a second signal has its row all the same, once", async () => {
  await using proxy = await startProxy({ demo: { generation: "C" } });
  const listening = listen(proxy.app, 0);
  const post = (content: string) => ask(listening.url, "/v1/chat/completions", content);
  const begun = await post("[demo: silence 20] Hello");
  const waiting = post("[demo: slow-headers 20] Hello");
  await until(() => proxy.app.inFlight.count === 2, "both run");
  // No time at all, as on a machine that is busy.
  await listening.cut(0);
  const rows = () => proxy.rows().map(({ http_status, error_type }) => [http_status, error_type]);
  const expected = [
    [503, "shutting_down"],
    [200, "shutting_down"],
  ];
  expect(rows().toSorted()).toEqual(expected.toSorted());
  expect((await waiting).status).toBe(503);
  expect(await begun.text()).toContain("shutting down");
  expect(rows()).toHaveLength(2);
  listening.close();
});

describe.skipIf(process.platform === "win32")("of the operating system", () => {
  test.skipIf(process.platform !== "linux")("the end of its terminal is nothing to a server behind nohup", async () => {
    await using server = await started(["nohup"]);
    const { command, url } = server;
    command.process.kill("SIGHUP");
    await Bun.sleep(200);
    expect((await fetch(`${url}/health/ready`)).status).toBe(200);
    command.process.kill("SIGTERM");
    expect(await command.exited).toBe(0);
    expect(command.stderr()).not.toContain("SIGHUP");
  });

  test.concurrent("SIGPIPE ends nothing; SIGTERM lets 12 streams end, takes nobody new, and the exit code is 0", async () => {
    await using server = await started();
    const { command, url } = server;
    const streams = await twelve(url, "[demo: long 60] Hello");
    for (let turn = 0; turn < 3; turn++) command.process.kill("SIGPIPE");
    expect((await fetch(`${url}/health`)).status).toBe(200);
    command.process.kill("SIGTERM");
    await until(() => command.stderr().includes("a second signal"), "the first signal is answered");
    expect(await fetch(`${url}/health`).catch(() => "refused")).toBe("refused");
    for (const { path, text } of streams) expect(await text).toContain(ended[path]);
    expect(await command.exited).toBe(0);
  });

  test.concurrent.each([
    ["SIGINT", "SIGINT"],
    ["SIGHUP", "SIGTERM"],
  ] as const)("%s and then %s end it, and each of 12 streams says so in its own words", async (one, two) => {
    await using server = await started();
    const { command, url } = server;
    const streams = await twelve(url, "[demo: silence 20] Hello");
    const google = await postJson(`${url}/v1beta/models/${exampleModels.flash}:streamGenerateContent?alt=sse`, {
      contents: [{ parts: [{ text: "[demo: silence 20] Hello" }] }],
    });
    command.process.kill(one);
    await until(() => command.stderr().includes("a second signal"), "the first signal is answered");
    command.process.kill(two);
    expect(await command.exited).toBe(130);
    for (const { path, text } of streams) {
      const told = await text;
      expect(told).toContain("shutting down");
      expect(told).not.toContain(ended[path]);
    }
    // Google's clients read a status in the stream, and send the request again for this one.
    expect(await google.text()).toContain('"code":503');
  });

  test.concurrent("two signals end a request that has no answer yet too: with an error of its dialect, and with a row", async () => {
    await using server = await started();
    const { command, github, url } = server;
    const slow = "[demo: slow-headers 20] Hello";
    const answers = paths.flatMap((path) =>
      [true, false].map(async (stream) => {
        const answer = await postJson(url + path, { ...bodies[path](slow), stream }, { "user-agent": "cut-short" });
        return [answer.status, (await answer.text()).includes("shutting down")];
      }),
    );
    const running = async () =>
      ((await (await fetch(`${url}/api/admin/meta`)).json()) as { running_count: number }).running_count;
    await until(async () => (await running()) === answers.length, "all of them run");
    command.process.kill("SIGTERM");
    await until(() => command.stderr().includes("a second signal"), "the first signal is answered");
    command.process.kill("SIGTERM");
    expect(await Promise.all(answers)).toEqual(answers.map(() => [503, true]));
    expect(await command.exited).toBe(130);
    using history = new Database(join(github.data, "admin.sqlite"), { readonly: true });
    const rows = history.query("SELECT http_status, error_type FROM requests WHERE client_name = 'cut-short'").all();
    expect(rows).toEqual(answers.map(() => ({ http_status: 503, error_type: "shutting_down" })));
  });
});
