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
    clientGone: new AbortController().signal,
    stopping: stopping.signal,
  });
  return { ...pumped, upstream, outcomes, stopping, cancelled, released: () => released, pulled: () => pulled };
}

const reason = new ProxyError("permission", "The owner has cancelled it.");
const stopped = new AbortController();
stopped.abort(reason);

type Scene = ReturnType<typeof scene>;
// biome-ignore format: a table is read by its rows
const ends: [when: string, given: Parameters<typeof scene>[0], first: string, happen: (scene: Scene) => void, rest: string, how: string, released: "at once" | "later" | "never"][] = [
  ["when the upstream is done", {}, "one ", ({ upstream }) => upstream.close(), "[end]", "complete", "never"],
  ["with an error, when the upstream breaks", {}, "one ", ({ upstream }) => upstream.error(new Error("reset")), "[upstream]", "failed", "never"],
  ["with an error, when the process stops", {}, "one ", ({ stopping }) => stopping.abort(), "[no_account]", "failed", "at once"],
  ["with the reason, when its call was cancelled", {}, "one ", ({ cancelled }) => cancelled.abort(reason), "[permission]", "failed", "at once"],
  ["with the reason, when it was to stop before it began", { stopping: stopped }, "", () => {}, "[permission]", "failed", "at once"],
  ["with an error, when what the upstream sends cannot be read", { throws: true }, "", ({ upstream }) => upstream.enqueue(text("one ")), "[upstream]", "failed", "at once"],
  ["when the terminal event is out, though the upstream stays open", {}, "", ({ upstream }) => upstream.enqueue(text("LAST")), "LAST", "complete", "later"],
];
test.each(ends)("a stream ends once, and truthfully %s", async (_, given, first, happen, rest, how, released) => {
  const played = scene(given);
  const reader = played.body.getReader();
  const next = async () => Buffer.from((await reader.read()).value ?? "").toString();
  if (first) {
    played.upstream.enqueue(text(first));
    expect(await next()).toBe(first);
  }
  happen(played);
  expect([await next(), (await reader.read()).done]).toEqual([rest, true]);
  expect([played.outcomes, played.released()]).toEqual([[how], released === "at once"]);
  if (released === "later") await until(played.released, "the upstream is let go");
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
