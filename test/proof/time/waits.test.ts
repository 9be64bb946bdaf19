/** Scenario: how long dragoman waits, and how long it keeps others waiting. */
import { describe, expect, test } from "bun:test";
import { connect } from "node:net";
import { autoAccounts } from "../../support/auto-accounts";
import { took } from "../../support/least";
import { type RunningProxy, startProxy } from "../../support/proxy";
import { until } from "../../support/until";

const chat = "/chat/completions";
const ask = (content = "Hello", model = "claude-sonnet-4.6") => ({ model, messages: [{ role: "user", content }] });
const post = (proxy: RunningProxy, content?: string, more = {}) =>
  proxy.post("/v1/chat/completions", { ...ask(content), ...more });
const asked = ({ demo }: RunningProxy) => demo.journal.filter(({ path }) => path === chat);
const slowDown = (seconds: number) => () =>
  Response.json(
    { error: { code: "rate_limited", message: "Slow down." } },
    { status: 429, headers: { "retry-after": String(seconds) } },
  );

describe("a silence of the upstream", () => {
  test.concurrent("of 40 s is survived, with a sign of life every 15 s", async () => {
    await using proxy = await startProxy();
    const text = await (await post(proxy, "[demo: silence 40] Hello", { stream: true })).text();
    expect(text.match(/^: /gm)!.length).toBe(2);
    expect(text).toEndWith("data: [DONE]\n\n");
  });

  test.concurrent("of 40 s before the first byte is survived too", async () => {
    await using proxy = await startProxy();
    const response = await post(proxy, "[demo: slow-headers 40] Hello", { stream: true });
    expect(response.status).toBe(200);
    expect(await response.text()).toEndWith("data: [DONE]\n\n");
  });
});

describe("a rate limit of the only account", () => {
  test.concurrent("of two seconds is waited for, once", async () => {
    await using proxy = await startProxy();
    proxy.demo.intercept(chat, slowDown(2));
    const waited = await took(async () => expect((await post(proxy)).status).toBe(200));
    expect(waited).toBeWithin(1_500, 4_000);
    expect(asked(proxy)).toHaveLength(2);
  });

  test.concurrent("of five seconds is not waited for: the refusal is there within 4 s", async () => {
    await using proxy = await startProxy();
    proxy.demo.intercept(chat, slowDown(5));
    expect(await took(async () => expect((await post(proxy)).status).toBe(429))).toBeLessThan(4_000);
  });

  test.concurrent.each(["99999999", "31", "abc", "1e9", "Fri, 01 Jan 2100 00:00:00 GMT"])(
    "of retry-after %s keeps nobody waiting for 3 s",
    async (seconds) => {
      await using proxy = await startProxy();
      const answer = () =>
        Response.json({ error: { code: "rate_limited" } }, { status: 429, headers: { "retry-after": seconds } });
      proxy.demo.intercept(chat, answer, 3);
      expect(await took(async () => expect((await post(proxy)).status).toBe(429))).toBeLessThan(3_000);
    },
  );

  test.concurrent("a rate limit of the only account is not waited for any more once the client has hung up", async () => {
    await using proxy = await startProxy();
    proxy.demo.intercept(chat, slowDown(2));
    const leaving = new AbortController();
    const left = proxy.post("/v1/chat/completions", ask(), { signal: leaving.signal }).catch(() => "left");
    await until(() => asked(proxy).length === 1, "the upstream is asked");
    leaving.abort();
    expect(await left).toBe("left");
    await Bun.sleep(2_500);
    expect(asked(proxy)).toHaveLength(1);
  });
});

test.concurrent("one account's token exchange hangs: requests that another can serve wait 3 s and no more", async () => {
  await using proxy = await startProxy({ accounts: ["octo-demo", "work-demo"] });
  proxy.demo.intercept(
    "/copilot_internal/v2/token",
    ({ account }) => (account === "octo-demo" ? new Promise<undefined>(() => {}) : undefined),
    Number.POSITIVE_INFINITY,
  );
  expect(await took(() => proxy.app.catalogue.models())).toBeWithin(2_900, 6_000);
  expect(await took(async () => expect((await post(proxy)).status).toBe(200))).toBeLessThan(6_000);
  expect(asked(proxy).map(({ account }) => account)).toEqual(["work-demo"]);
});

test.concurrent("a choice of Auto is given up after five seconds", async () => {
  const { student } = autoAccounts();
  await using proxy = await startProxy({
    demo: { accounts: [{ ...student, auto: { ...student.auto!, fault: "silent" } }] },
  });
  const waited = await took(async () =>
    expect((await proxy.post("/v1/chat/completions", ask("Hello", "auto"))).status).toBe(200),
  );
  expect(waited).toBeWithin(4_900, 8_000);
});

describe("what stops coming is not waited for", () => {
  const head = "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\n";
  /** How long the proxy keeps a connection whose body comes like this, ms. */
  const heldFor = (proxy: RunningProxy, send: (write: (text: string) => void) => void) =>
    took(
      () =>
        new Promise<void>((resolve) => {
          const socket = connect(Number(new URL(proxy.url).port), "127.0.0.1", () =>
            send((text) => void socket.write(text)),
          );
          socket.on("data", () => {});
          socket.on("error", () => {});
          socket.on("close", () => resolve());
          socket.on("end", () => socket.end());
        }),
    );
  /** The same for one that sends a piece again and again. */
  const heldByTrickle = async (proxy: RunningProxy, first: string, piece: string, everyMs: number) => {
    let timer: Timer | undefined;
    const held = await heldFor(proxy, (write) => {
      write(first);
      timer = setInterval(() => write(piece), everyMs);
    });
    clearInterval(timer);
    return held;
  };

  test.concurrent("a body that stops is closed within 16 s", async () => {
    await using proxy = await startProxy();
    expect(await heldFor(proxy, (write) => write(`${head}Content-Length: 1000\r\n\r\n{"model": `))).toBeLessThan(
      16_000,
    );
    expect(proxy.demo.journal).toEqual([]);
  });

  test.concurrent("headers that trickle are closed within 17 s", async () => {
    await using proxy = await startProxy();
    expect(await heldByTrickle(proxy, head, "X: y\r\n", 1_000)).toBeLessThan(17_000);
  });

  test.concurrent.each([
    ["with a length", "Content-Length: 1000000\r\n\r\n", " "],
    ["in chunks", "Transfer-Encoding: chunked\r\n\r\n", "1\r\n \r\n"],
  ])("a body that trickles (%s) is closed within 17 s, and others are served", async (_name, length, piece) => {
    await using proxy = await startProxy();
    const held = heldByTrickle(proxy, head + length, piece, 500);
    expect((await post(proxy)).status).toBe(200);
    expect(await held).toBeLessThan(17_000);
  });
});
