/** The order in which requests that wait are let out, and how many may wait. */
import { expect, test } from "bun:test";
import { type Waiter, WaitingRoom, type WaitingRoomOptions } from "../../src/accounts/waiting-room";
import { ProxyError } from "../../src/errors";
import { until } from "../support/until";

const limited = new ProxyError("rate_limit", "Limited.");

/** Requests that wait for one limit, and the order in which they were let out. */
function start(options: Partial<WaitingRoomOptions> = {}) {
  const state = { ms: 60_000 as number | undefined, now: 0 };
  const room = new WaitingRoom({ now: () => state.now, ...options });
  const out: string[] = [];
  const waiterOf = (id: string, more: Partial<Waiter> = {}): Waiter => ({
    ...{ id, line: "a", member: null, bytes: 1, since: state.now, deadline: 1_000, error: limited },
    ...{ untilReady: () => state.ms, signal: new AbortController().signal, ...more },
  });
  const wait = (id: string, more?: Partial<Waiter>) => {
    const waiting = room.wait(waiterOf(id, more)).then(() => void out.push(id));
    return waiting.catch((thrown) => thrown);
  };
  return { state, room, out, wait };
}

const shows = (out: string[], expected: string[]) =>
  until(() => out.length >= expected.length, "they are let out").then(() => expect(out).toEqual(expected));

test("one is let out first, and one more with each that was served", async () => {
  const { state, room, out, wait } = start();
  for (const id of "abcdefgh") void wait(id);
  state.ms = 0;
  await shows(out, ["a"]);
  room.leave("a", true);
  await shows(out, [..."abc"]);
  room.leave("c", true);
  await shows(out, [..."abcde"]);
  // One that was refused for another reason says nothing about the limit.
  room.leave("b");
  await shows(out, [..."abcdef"]);
});

test("one that meets a limit again keeps its place, and goes alone", async () => {
  const { state, room, out, wait } = start();
  for (const id of "abcd") void wait(id);
  state.ms = 0;
  await shows(out, ["a"]);
  room.leave("a", true);
  await shows(out, [..."abc"]);
  state.ms = 60_000;
  void wait("b");
  void wait("c");
  await Bun.sleep(300);
  expect(out).toEqual([..."abc"]);
  state.ms = 0;
  await shows(out, [..."abcb"]);
});

test("one that came earlier goes first, though it tried for longer before it waited", async () => {
  const { state, room, out, wait } = start();
  state.now = 10;
  void wait("b", { since: 5 });
  void wait("c", { since: 7 });
  void wait("a", { since: 3 });
  state.ms = 0;
  await shows(out, ["a"]);
  room.leave("a", true);
  await shows(out, [..."abc"]);
});

test("lines do not wait for one another, and in a line nobody for one whose limit lasts longer", async () => {
  const { state, out, wait } = start();
  void wait("slow", { untilReady: () => 60_000 });
  void wait("a");
  void wait("other", { line: "b" });
  state.ms = 0;
  await shows(out, ["a", "other"]);
});

test("nobody waits beyond the deadline, nor where waiting no longer helps", async () => {
  const { state, room, wait } = start();
  const late = wait("late");
  state.now = 1_000;
  expect(await late).toBe(limited);
  expect(room.count).toBe(0);
  state.now = 0;
  const tried = wait("tried");
  state.ms = undefined;
  expect(await tried).toBeUndefined();
});

test("one whose machine slept beyond the deadline goes if its limit has ended, and is refused if it lasts", async () => {
  const { state, out, wait } = start();
  void wait("a", { untilReady: () => Math.max(0, 500 - state.now) });
  const limitedStill = wait("b", { line: "b" });
  state.now = 36_000_000;
  await shows(out, ["a"]);
  expect(await limitedStill).toBe(limited);
});

test("a clock that is set back does not prolong a wait", async () => {
  const { state, room, wait } = start();
  state.now = 86_400_000;
  const waiting = wait("a", { deadline: state.now + 500 });
  state.now = 0;
  expect(await waiting).toBe(limited);
  expect(room.count).toBe(0);
});

test("the number of those who wait is bounded: of all, of a member, and of bytes", async () => {
  const { room, wait } = start({ limits: { all: 3, ofMember: 1, bytes: 10 } });
  void wait("a", { member: "anna" });
  expect(await wait("b", { member: "anna" })).toBe(limited);
  expect(await wait("c", { bytes: 10 })).toBe(limited);
  void wait("d");
  void wait("e");
  expect(await wait("f")).toBe(limited);
  room.leave("d");
  void wait("g");
  expect(room.count).toBe(3);
});

test("a request whose client hangs up while it waits frees its place", async () => {
  const { room, wait } = start();
  const caller = new AbortController();
  const gone = wait("a", { signal: caller.signal });
  caller.abort(limited);
  expect(await gone).toBe(limited);
  expect(room.count).toBe(0);
});

test("after a stop everybody gets its error, who comes later too", async () => {
  const { room, wait } = start();
  const stopped = new ProxyError("no_account", "Stopping.");
  const waiting = wait("a");
  room.stop(() => stopped);
  expect(await waiting).toBe(stopped);
  expect(await wait("b")).toBe(stopped);
});
