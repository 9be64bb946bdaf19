/** Rows: the order in which requests that wait are let out, and how many may wait. */
import { expect, test } from "bun:test";
import { ProxyError } from "../../../src/lib/errors";
import {
  maxBytes,
  maxBytesInLine,
  maxInLine,
  maxWaiting,
  type Waiter,
  WaitingRoom,
} from "../../../src/people/accounts/waiting-room";
import { until } from "../../support/until";

const limited = new ProxyError("rate_limit", "Limited.");

/** Requests that wait for one limit, and the order in which they were let out. */
function start() {
  const state = { ms: 60_000 as number | undefined };
  const room = new WaitingRoom();
  const out: string[] = [];
  const ends = new Map<string, (wasServed: boolean) => void>();
  const wait = (id: string, more: Partial<Waiter> = {}) => {
    const since = performance.now();
    const waiting = room.wait({
      ...{ line: "a", bytes: 1_000, since, deadline: since + 60_000, error: limited },
      ...{ untilReady: () => state.ms, signal: new AbortController().signal, ...more },
    });
    const goes = (done: (wasServed: boolean) => void) => {
      ends.set(id, done);
      out.push(id);
    };
    return waiting.then(goes).catch((thrown) => thrown);
  };
  return { state, room, out, wait, end: (id: string, wasServed: boolean) => ends.get(id)!(wasServed) };
}

const shows = (out: string[], expected: string[]) =>
  until(() => out.length >= expected.length, "they are let out").then(() => expect(out).toEqual(expected));

test("one is let out first, one more with each that was served, and only one after one that was not", async () => {
  const { state, room, out, wait, end } = start();
  for (const id of "abcdefgh") void wait(id);
  await Bun.sleep(300);
  expect([out, room.count]).toEqual([[], 8]);
  state.ms = 0;
  await shows(out, ["a"]);
  await Bun.sleep(300);
  expect(out).toEqual(["a"]);
  end("a", true);
  await shows(out, [..."abc"]);
  end("c", true);
  await shows(out, [..."abcde"]);
  end("b", false);
  end("d", false);
  await Bun.sleep(300);
  expect(out).toEqual([..."abcde"]);
  end("e", true);
  await shows(out, [..."abcdefg"]);
  for (const id of "fg") end(id, true);
  await shows(out, [..."abcdefgh"]);
  end("h", true);
  expect([room.count, room.lastReadyOf("a")]).toEqual([0, undefined]);
});

test("one that came earlier goes first, though it tried for longer before it waited", async () => {
  const { state, out, wait, end } = start();
  const now = performance.now();
  void wait("b", { since: now - 5 });
  void wait("c", { since: now - 3 });
  void wait("a", { since: now - 7 });
  state.ms = 0;
  await shows(out, ["a"]);
  end("a", true);
  await shows(out, [..."abc"]);
});

test("lines do not wait for one another, and in a line nobody for one whose limit lasts longer", async () => {
  const { state, room, out, wait } = start();
  void wait("slow", { untilReady: () => 60_000 });
  void wait("a");
  void wait("other", { line: "b" });
  expect(room.lastReadyOf("b")).toBeUndefined();
  state.ms = 0;
  expect(room.lastReadyOf("b")?.error).toBe(limited);
  await shows(out, ["a", "other"]);
});

test("nobody waits beyond the deadline, and whoever needs a person's help goes to hear why", async () => {
  const { state, room, wait } = start();
  const late = wait("late", { deadline: performance.now() + 400 });
  expect(await late).toBe(limited);
  expect(room.count).toBe(0);
  const tried = wait("tried");
  state.ms = undefined;
  expect(await tried).toBeUndefined();
});

test("the number of those who wait is bounded, of all and in one line, and a place that is left is free again", async () => {
  const { room, wait } = start();
  const leaving = new AbortController();
  void wait("first", { signal: leaving.signal });
  for (let at = 1; at < maxInLine; at += 1) void wait(`${at}`);
  expect(await wait("one too many")).toBe(limited);
  for (let at = maxInLine; at < maxWaiting; at += 1) void wait(`${at}`, { line: `${at}` });
  expect(room.count).toBe(maxWaiting);
  expect(await wait("one too many", { line: "new" })).toBe(limited);
  leaving.abort(limited);
  await Promise.resolve();
  void wait("last");
  expect(room.count).toBe(maxWaiting);
});

test("the bytes of those who wait are bounded too, of all and in one line, and are given back", async () => {
  const { room, wait } = start();
  const leaving = new AbortController();
  const large = { bytes: maxBytesInLine / 4 };
  void wait("first", { ...large, signal: leaving.signal });
  for (let at = 1; at < 4; at += 1) void wait(`${at}`, large);
  expect(await wait("one too many")).toBe(limited);
  for (let at = 4; at < (4 * maxBytes) / maxBytesInLine; at += 1) void wait(`${at}`, { ...large, line: `${at % 5}` });
  expect(await wait("one too many", { line: "new" })).toBe(limited);
  const before = room.count;
  leaving.abort(limited);
  await Promise.resolve();
  void wait("last", large);
  expect(room.count).toBe(before);
});

test("a request whose client hangs up while it waits, or before, leaves nothing behind", async () => {
  const { room, wait } = start();
  const caller = new AbortController();
  const gone = wait("a", { signal: caller.signal });
  caller.abort(limited);
  expect(await gone).toBe(limited);
  expect(room.count).toBe(0);
  expect(await wait("a", { signal: caller.signal })).toBe(limited);
  expect(room.count).toBe(0);
});

test("after a stop everybody gets its error, who comes later too", async () => {
  const { room, wait } = start();
  const stopped = new ProxyError("no_account", "Stopping.");
  const waiting = [..."abc"].map((id) => wait(id, { line: id }));
  let asked = 0;
  void wait("d", { untilReady: () => (asked += 1) });
  room.stop(() => stopped);
  expect(await Promise.all(waiting)).toEqual([stopped, stopped, stopped]);
  expect(await wait("e")).toBe(stopped);
  // Nobody's departure looks at the lines of the others.
  expect([room.count, asked]).toEqual([0, 0]);
});
