/** Rows: how soon requests end that are large, odd or given up, and how little they keep others waiting. */
import { describe, expect, test } from "bun:test";
import { connect, type Socket } from "node:net";
import { exampleModels } from "../../../src/proxy/upstream/models/known-models";
import { run } from "../../support/command";
import { chatChunk, eventStream } from "../../support/event-stream";
import { workedMs } from "../../support/held";
import { leastOf, took } from "../../support/least";
import { type ProxyOptions, type RunningProxy, startProxy } from "../../support/proxy";
import { keptWaiting } from "../../support/sandbox";
import { until } from "../../support/until";

/** What the thread works meanwhile, in ms: client, proxy and upstream share it, and other processes do not count. */
async function workOf(work: () => Promise<unknown>): Promise<number> {
  const before = workedMs();
  await work();
  return workedMs() - before;
}

const hello = { role: "user", content: "Hello" };
const chat = { model: "gpt-5-mini", messages: [hello] };
const native = { model: "claude-sonnet-4.6", max_tokens: 100, messages: [hello] };

describe("the upstream's work ends when the client hangs up", () => {
  const situations: [
    where: string,
    most: number,
    options: ProxyOptions,
    path: string,
    directive: string,
    isBegun: boolean,
  ][] = [
    ["before the headers of Chat", 1_000, {}, "/v1/chat/completions", "[demo: slow-headers 20]", false],
    ["in the middle of Chat", 1_000, { demo: { pace: 10 } }, "/v1/chat/completions", "[demo: long 5000]", true],
    ["in a silence of Chat", 1_000, {}, "/v1/chat/completions", "[demo: silence 20]", true],
    ["in the middle of Responses", 100, { demo: { pace: 20 } }, "/v1/responses", "[demo: long 500]", true],
  ];
  test.each(situations)("%s, within %d ms", async (_where, most, options, path, directive, isBegun) => {
    await using proxy = await startProxy(options);
    const measure = async () => {
      const leaving = new AbortController();
      const content = `${directive} Hello`;
      const body =
        path === "/v1/responses"
          ? { model: "gpt-5.2", input: content }
          : { ...chat, messages: [{ role: "user", content }] };
      const answer = proxy.post(path, { ...body, stream: true }, { signal: leaving.signal });
      answer.catch(() => {});
      await until(() => proxy.demo.open === 1, "the upstream is asked");
      if (isBegun) await (await answer).body!.getReader().read();
      return took(() => {
        leaving.abort();
        return until(() => proxy.demo.open === 0, "the upstream's connection is closed");
      });
    };
    await (await proxy.post(path, path === "/v1/responses" ? { model: "gpt-5.2", input: "Hi" } : chat)).text();
    expect(await leastOf(most, measure)).toBeLessThan(most);
  });
});

describe("a large request is answered", () => {
  const many = Array.from({ length: 100_000 }, () => hello);
  const keys = Object.fromEntries(Array.from({ length: 100_000 }, (_, index) => [`k${index}`, index]));
  const url = `data:image/png;base64,${"A".repeat(20 * 1024 * 1024)}`;
  const picture = [
    { type: "text", text: "Hello" },
    { type: "image_url", image_url: { url } },
  ];
  test.each<[string, number, string, object]>([
    ["100,000 messages of Chat", 2_500, "/v1/chat/completions", { ...chat, messages: many }],
    ["100,000 messages of Messages", 2_500, "/v1/messages", { ...native, messages: many }],
    ["100,000 messages that are translated", 2_500, "/v1/messages", { ...native, model: "gpt-5-mini", messages: many }],
    ["100,000 keys within a member", 1_500, "/v1/chat/completions", { ...chat, metadata: keys }],
    ["a key of 1 MB", 1_500, "/v1/chat/completions", { ...chat, ["k".repeat(1024 * 1024)]: 1 }],
    ["100,000 keys", 1_500, "/v1/chat/completions", { ...keys, ...chat }],
    ["an image of 20 MB", 5_000, "/v1/chat/completions", { ...chat, messages: [{ role: "user", content: picture }] }],
  ])("%s: with less than %d ms of work", async (what, most, path, body) => {
    await using proxy = await startProxy();
    const send = async () => {
      const response = await proxy.post(path, body);
      await response.arrayBuffer();
      expect([200, 400]).toContain(response.status);
    };
    expect(await leastOf(most, () => workOf(send))).toBeLessThan(most);
    if (what.startsWith("an image")) expect(proxy.demo.journal.at(-1)!.bytes.length).toBeGreaterThan(url.length);
  });

  test.each([100_000, 1_000_000])(
    "%d arrays within each other are refused with less than a 200th of that in ms of work",
    async (depth) => {
      await using proxy = await startProxy();
      const body = `{"model":"gpt-5-mini","messages":${"[".repeat(depth)}${"]".repeat(depth)}}`;
      const send = async () => expect((await proxy.post("/v1/chat/completions", body)).status).toBe(400);
      expect(await leastOf(depth / 200, () => workOf(send))).toBeLessThan(depth / 200);
    },
  );
});

describe("an odd answer is read", () => {
  test.each<[string, number, (proxy: RunningProxy) => Promise<unknown>]>([
    [
      "100,000 empty data lines in one event",
      2_000,
      async (proxy) => {
        proxy.demo.intercept("/chat/completions", () => eventStream(`${"data:\n".repeat(100_000)}\n`));
        await (await proxy.post("/v1/chat/completions", { ...chat, stream: true })).text();
      },
    ],
    [
      "a call with the index 2147483647",
      1_000,
      async (proxy) => {
        const call = { index: 2147483647, id: "c", type: "function", function: { name: "f", arguments: "{}" } };
        const chunk = chatChunk({ delta: { tool_calls: [call] }, finish_reason: null });
        proxy.demo.intercept("/chat/completions", () => eventStream(`${chunk}data: [DONE]\n\n`));
        await (await proxy.post("/v1/messages", { ...native, model: "gpt-5-mini", stream: true })).text();
      },
    ],
  ])("%s: in less than %d ms", async (_what, most, read) => {
    const measure = async () => {
      await using proxy = await startProxy();
      await (await proxy.post("/v1/chat/completions", chat)).text();
      return await took(() => read(proxy));
    };
    expect(await leastOf(most, measure)).toBeLessThan(most);
  });

  test("a list of 100,000 models: in less than 5 s", async () => {
    const data = Array.from({ length: 100_000 }, (_, index) => ({ id: `m-${index}`, name: "<b>", vendor: "x" }));
    const measure = async () => {
      await using proxy = await startProxy();
      proxy.demo.intercept("/models", () => Response.json({ data, object: "list" }), 5);
      return await took(async () => {
        await (await fetch(`${proxy.url}/v1/models`)).text();
        await (await proxy.post("/v1/chat/completions", { ...chat, model: "nobody" })).text();
      });
    };
    expect(await leastOf(5_000, measure)).toBeLessThan(5_000);
  });
});

describe("nobody is kept waiting", () => {
  const connections = (proxy: RunningProxy, count: number, begin: string) =>
    Promise.all(
      Array.from(
        { length: count },
        () =>
          new Promise<Socket>((resolve, reject) => {
            const socket = connect(Number(new URL(proxy.url).port), "127.0.0.1", () => {
              if (begin) socket.write(begin);
              resolve(socket);
            });
            socket.on("error", reject);
          }),
      ),
    );

  test.each([
    ["1,000 idle connections", 1_000, ""],
    ["200 slow senders", 200, "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n{"],
  ])("by %s: another is answered in less than 100 ms", async (_who, count, begin) => {
    await using proxy = await startProxy();
    const sockets = await connections(proxy, count, begin);
    for (const socket of sockets) socket.on("error", () => {});
    await (await fetch(`${proxy.url}/v1/models`)).text();
    const measure = () => took(async () => expect((await fetch(`${proxy.url}/v1/models`)).status).toBe(200));
    expect(await leastOf(100, measure)).toBeLessThan(100);
    for (const socket of sockets) socket.destroy();
  });

  test("by a provider that hangs: the list of models is there within 5 s", async () => {
    using hanging = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      idleTimeout: 30,
      fetch: () => new Promise<Response>(() => {}),
    });
    await using proxy = await startProxy({
      config: { providers: { hanging: { type: "chat", baseUrl: `${hanging.url}v1` } } },
    });
    expect(await took(async () => void (await (await fetch(`${proxy.url}/v1/models`)).text()))).toBeLessThan(5_000);
  });

  test("by a counter of tokens that hangs: an estimate is there within a second", async () => {
    const path = "/v1/messages/count_tokens";
    const measure = async () => {
      await using proxy = await startProxy({ demo: { generation: "C" } });
      const count = async () => void (await (await proxy.post(path, native)).text());
      await (await proxy.post("/v1/messages", native)).text();
      await count();
      proxy.demo.intercept(path, () => new Promise(() => {}), Number.POSITIVE_INFINITY);
      return await took(count);
    };
    expect(await leastOf(1_000, measure)).toBeLessThan(1_000);
  });
});

describe("counting 5 MB of text", () => {
  const megabytes = 5 * 1024 * 1024;
  const line = "The quick brown fox, jumps(over) the_lazy dog; 汉字 and 1234 more.\n";
  const bodies = {
    words: line.repeat(megabytes / Buffer.byteLength(line)),
    "one letter": "a".repeat(megabytes),
    spaces: " ".repeat(megabytes),
    emoji: "👩‍👩‍👧🎈".repeat(megabytes / Buffer.byteLength("👩‍👩‍👧🎈")),
  };

  test.each(Object.entries(bodies))(
    "%s: takes less than 15 s, and a stream beside it has no gap of 200 ms",
    async (_, content) => {
      await using command = run(["start", "--demo", "--json", "--port", "0"]);
      const { url, pid } = await command.ready();
      const measure = () =>
        widestGapWhile(url, pid, async () => {
          const body = JSON.stringify({ ...native, model: exampleModels.gpt, messages: [{ role: "user", content }] });
          const counted = await took(async () => {
            const response = await fetch(`${url}/v1/messages/count_tokens`, { method: "POST", body });
            expect(((await response.json()) as { input_tokens: number }).input_tokens).toBeGreaterThan(10_000);
          });
          expect(counted).toBeLessThan(15_000);
        });
      expect(await leastOf(200, measure)).toBeLessThan(200);
    },
  );
});

/** The longest pause, in ms, of streams one after another while something is done; without what server and reader waited for a core. */
async function widestGapWhile(url: string, pid: number, work: () => Promise<void>): Promise<number> {
  const leaving = new AbortController();
  const { signal } = leaving;
  const messages = [{ role: "user", content: "[demo: long 5000]" }];
  const body = JSON.stringify({ model: exampleModels.gpt, stream: true, messages });
  // A clock that stands still while one of them is kept from running.
  const now = () => performance.now() - keptWaiting(pid) - keptWaiting(process.pid);
  let last = 0;
  let widest = 0;
  const begun = Promise.withResolvers<void>();
  const reading = (async () => {
    while (!signal.aborted) {
      const response = await fetch(`${url}/v1/chat/completions`, { method: "POST", body, signal });
      expect(response.status).toBe(200);
      for await (const _ of response.body!) {
        const at = now();
        if (last > 0) widest = Math.max(widest, at - last);
        last = at;
        begun.resolve();
      }
    }
  })().catch((thrown) => {
    if (!signal.aborted) throw thrown;
  });
  await Promise.race([begun.promise, reading]);
  await work();
  widest = Math.max(widest, now() - last);
  leaving.abort();
  await reading;
  return widest;
}
