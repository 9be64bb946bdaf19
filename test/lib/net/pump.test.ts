/** Scenario: a stream from the upstream to the client: its end, its silence, and its pace. */
import { expect, test } from "bun:test";
import { ProxyError } from "../../../src/lib/errors";
import { openBody } from "../../../src/lib/net/out/body";
import { startClock } from "../../../src/lib/net/out/clock";
import { pump, type StageChain } from "../../../src/lib/net/stream/pump";
import { until } from "../../support/until";

const text = (value: string) => new TextEncoder().encode(value);
const limits = { keepAlive: 60, headers: 5_000, idle: 300, total: 5_000 };

/** An upstream that says what it is told to, a chain that passes bytes on, and what became of both. */
function scene({
  given = limits,
  gone = new AbortController(),
  stopping = new AbortController(),
  cancelled = new AbortController(),
  throws = false,
} = {}) {
  let upstream!: ReadableStreamDefaultController<Uint8Array>;
  let pulled = 0;
  let released = false;
  const source = new ReadableStream<Uint8Array>({
    start(controller) {
      upstream = controller;
    },
    pull() {
      pulled++;
    },
    cancel() {
      released = true;
    },
  });
  const out: Uint8Array[] = [];
  const outcomes: string[] = [];
  let over = false;
  const chain: StageChain = {
    feed: {
      push(bytes) {
        if (throws) throw new ProxyError("upstream", "unreadable");
        if (!Buffer.from(bytes).includes("PING")) out.push(bytes);
        over ||= Buffer.from(bytes).includes("LAST");
      },
      end: () => void out.push(text("[end]")),
    },
    take: () => (out.length > 0 ? Buffer.concat(out.splice(0)) : undefined),
    isOver: () => over,
    keepAlive: () => void out.push(text("[beat]")),
    fail: (error) => void out.push(text(`[${error.kind}]`)),
    ended: (how) => void outcomes.push(how),
  };
  const clock = startClock(given, "The upstream", "http://127.0.0.1/", cancelled.signal);
  clock.answered();
  const upstreamBody = openBody(new Response(source), clock, "The upstream", "http://127.0.0.1/");
  const pumped = pump(upstreamBody, chain, {
    keepAliveMs: given.keepAlive,
    clientGone: gone.signal,
    stopping: stopping.signal,
  });
  return { ...pumped, upstream, outcomes, gone, stopping, released: () => released, pulled: () => pulled };
}

test("a stream ends once when the upstream is done", async () => {
  const { body, upstream, outcomes } = scene();
  upstream.enqueue(text("one "));
  upstream.close();
  expect(await new Response(body).text()).toBe("one [end]");
  expect(outcomes).toEqual(["complete"]);
});

test("a stream ends once, and truthfully when it was to stop before it began", async () => {
  const stopping = new AbortController();
  stopping.abort(new ProxyError("permission", "The owner has cancelled it."));
  const { body, outcomes, released } = scene({ stopping });
  expect(await new Response(body).text()).toBe("[permission]");
  expect([outcomes, released()]).toEqual([["failed"], true]);
});

test("a stream ends once, with an error, when the upstream breaks", async () => {
  const { body, upstream, outcomes } = scene();
  upstream.enqueue(text("one "));
  const reader = body.getReader();
  expect(Buffer.from((await reader.read()).value!).toString()).toBe("one ");
  upstream.error(new Error("reset"));
  expect(Buffer.from((await reader.read()).value!).toString()).toBe("[upstream]");
  expect((await reader.read()).done).toBe(true);
  expect(outcomes).toEqual(["failed"]);
});

test("a stream ends once, and truthfully when what the upstream sends cannot be read", async () => {
  const { body, upstream, outcomes, released } = scene({ throws: true });
  upstream.enqueue(text("one "));
  expect(await new Response(body).text()).toBe("[upstream]");
  expect(outcomes).toEqual(["failed"]);
  expect(released()).toBe(true);
});

test("a stream ends once, and truthfully when the terminal event is out, though the upstream stays open", async () => {
  const { body, upstream, outcomes, released } = scene();
  upstream.enqueue(text("LAST"));
  expect(await new Response(body).text()).toBe("LAST");
  expect(outcomes).toEqual(["complete"]);
  expect(released()).toBe(false);
  await until(released, "the upstream is let go");
});

test("a stream ends once, with an error, when the process stops", async () => {
  const { body, upstream, outcomes, stopping, released } = scene();
  upstream.enqueue(text("one "));
  const reader = body.getReader();
  expect(Buffer.from((await reader.read()).value!).toString()).toBe("one ");
  stopping.abort();
  expect(Buffer.from((await reader.read()).value!).toString()).toBe("[no_account]");
  expect((await reader.read()).done).toBe(true);
  expect(outcomes).toEqual(["failed"]);
  expect(released()).toBe(true);
});

test("a stream ends once, and truthfully when its call was cancelled, with the reason", async () => {
  const cancelled = new AbortController();
  const { body, upstream, outcomes, released } = scene({ cancelled });
  upstream.enqueue(text("one "));
  const reader = body.getReader();
  expect(Buffer.from((await reader.read()).value!).toString()).toBe("one ");
  cancelled.abort(new ProxyError("permission", "The owner has cancelled it."));
  expect(Buffer.from((await reader.read()).value!).toString()).toBe("[permission]");
  expect([outcomes, released()]).toEqual([["failed"], true]);
});

test("a stream ends once, and truthfully when the client leaves, the upstream is let go at once", async () => {
  const { body, upstream, outcomes, released } = scene();
  upstream.enqueue(text("one "));
  const reader = body.getReader();
  await reader.read();
  await reader.cancel();
  expect(outcomes).toEqual(["client-gone"]);
  expect(released()).toBe(true);
});

test("silence gets a sign of life again and again, then the upstream is given up", async () => {
  const { body, upstream, outcomes } = scene({ given: { ...limits, keepAlive: 20, idle: 600 } });
  upstream.enqueue(text("one "));
  const all = await new Response(body).text();
  expect(all).toMatch(/^one (\[beat\]){2,}\[timeout\]$/);
  expect(outcomes).toEqual(["failed"]);
});

test("silence is what the upstream does not send, not what the client is not sent: one that pings is heard", async () => {
  const given = { ...limits, keepAlive: 20, idle: 1_000 };
  const { body, upstream, outcomes } = scene({ given });
  const until = performance.now() + 2.2 * given.idle;
  for await (const piece of body) {
    expect(Buffer.from(piece).toString()).toMatch(/^(\[beat\]|LAST)+$/);
    if (outcomes.length === 0) upstream.enqueue(text(performance.now() < until ? "PING" : "LAST"));
  }
  expect(outcomes).toEqual(["complete"]);
});

test("silence before the first byte settles `begun`, so that the client's connection can be kept alive", async () => {
  const { begun, body, upstream } = scene();
  const startedAt = performance.now();
  await begun;
  expect(performance.now() - startedAt).toBeGreaterThan(40);
  upstream.enqueue(text("LAST"));
  expect(await new Response(body).text()).toContain("LAST");
});

test("a client that does not read is no silence of the upstream", async () => {
  const { body, upstream, outcomes } = scene();
  upstream.enqueue(text("one "));
  upstream.enqueue(text("two "));
  await Bun.sleep(limits.idle + 150);
  upstream.enqueue(text("LAST"));
  expect(outcomes).toEqual([]);
  expect(await new Response(body).text()).toBe("one two LAST");
});

test("a stream that never ends is ended at its total limit", async () => {
  const { body, upstream, outcomes } = scene({ given: { ...limits, keepAlive: 40, idle: 5_000, total: 100 } });
  upstream.enqueue(text("one "));
  expect(await new Response(body).text()).toMatch(/\[timeout\]$/);
  expect(outcomes).toEqual(["failed"]);
});

test("the upstream is read no further than the client reads", async () => {
  const { body, upstream, pulled } = scene();
  for (let piece = 0; piece < 50; piece++) upstream.enqueue(text(`${piece} `));
  await Bun.sleep(30);
  const reader = body.getReader();
  await reader.read();
  await Bun.sleep(30);
  expect(pulled()).toBeLessThan(3);
  await reader.cancel();
});
