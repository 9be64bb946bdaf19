/** Signals: the first lets what runs end, the second does not, and one that means nothing here changes nothing. */
import { describe, expect, test } from "bun:test";
import { type Command, run } from "../support/command";
import { until } from "../support/until";

const bodies = {
  "/v1/chat/completions": (content: string) => ({ model: "gpt-5-mini", messages: [{ role: "user", content }] }),
  "/v1/responses": (input: string) => ({ model: "gpt-5.4", input }),
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
  fetch(url + path, {
    method: "POST",
    body: JSON.stringify({ ...bodies[path](content), stream: true }),
    headers: { "content-type": "application/json" },
  });

/** Fifty streams of the three dialects that have begun. */
async function fifty(command: Command, content: string) {
  const { url } = await command.ready();
  const streams = await Promise.all(
    Array.from({ length: 50 }, async (_, at) => {
      const path = paths[at % paths.length]!;
      return { path, text: (await ask(url, path, content)).text() };
    }),
  );
  return { url, streams };
}

describe.skipIf(process.platform === "win32")("of the operating system", () => {
  test.concurrent.each(["SIGTERM", "SIGINT", "SIGHUP"] as const)(
    "%s lets 50 streams end, takes nobody new, and the exit code is 0",
    async (signal) => {
      await using command = run(["start", "--demo", "--json", "--port", "0"]);
      const { url, streams } = await fifty(command, "[demo: long 60] Hello");
      command.process.kill(signal);
      await until(() => command.stderr().includes("a second signal"), "the first signal is answered");
      expect(await fetch(`${url}/health`).catch(() => "refused")).toBe("refused");
      for (const { path, text } of streams) expect(await text).toContain(ended[path]);
      expect(await command.exited).toBe(0);
    },
  );

  test.concurrent.each([
    ["SIGTERM", "SIGTERM"],
    ["SIGINT", "SIGINT"],
    ["SIGHUP", "SIGTERM"],
  ] as const)("%s and then %s end it, and each of 50 streams says so in its own words", async (one, two) => {
    await using command = run(["start", "--demo", "--json", "--port", "0"]);
    const { streams } = await fifty(command, "[demo: silence 20] Hello");
    command.process.kill(one);
    await until(() => command.stderr().includes("a second signal"), "the first signal is answered");
    command.process.kill(two);
    expect(await command.exited).toBe(130);
    for (const { path, text } of streams) {
      const told = await text;
      expect(told).toContain("shutting down");
      expect(told).not.toContain(ended[path]);
    }
  });

  test.concurrent("SIGPIPE ends nothing", async () => {
    await using command = run(["start", "--demo", "--json", "--port", "0"]);
    const { url, streams } = await fifty(command, "[demo: long 20] Hello");
    for (let turn = 0; turn < 3; turn++) command.process.kill("SIGPIPE");
    for (const { path, text } of streams) expect(await text).toContain(ended[path]);
    expect((await fetch(`${url}/health`)).status).toBe(200);
  });
});
