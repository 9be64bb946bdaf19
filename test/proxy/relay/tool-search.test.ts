/**
 * Scenario: tools that are searched for: deferred by the client, or more than the model takes; from
 * `fixtures/scenes/tools.txt`, and here what a search may cost.
 */
import { beforeEach, describe, expect, test } from "bun:test";
import { matchInThread } from "../../../src/proxy/server-tools/match-threads";
import { searchTools } from "../../../src/proxy/server-tools/tool-search";
import { testScenes } from "../../support/scenes";

testScenes("tools");

describe("searches in threads", () => {
  const candidates = Array.from({ length: 300 }, (_, at) => ({ name: `tool_${at}`, description: "é".repeat(4_000) }));
  const tools = candidates.map((tool) => ({ ...tool, inputs: [] }));
  const never = new AbortController().signal;
  /** By a pattern that would take half a minute. A search has five seconds; the proof tier waits for them. */
  const findSlowly = (signal: AbortSignal, limitMs: number) =>
    matchInThread({ query: "[\\p{L}]{1000}é", how: "regex", tools }, signal, limitMs);
  const find = (limitMs: number, signal = never) =>
    matchInThread({ query: "tool_7$", how: "regex", tools: tools.slice(0, 10) }, signal, limitMs);
  const outcomes: string[] = [];
  /** Notes how a search ends. */
  const noted = (name: string, work: Promise<unknown>) =>
    work.then(
      (names) => outcomes.push(`${name}: ${names}`),
      ({ message }) => outcomes.push(`${name}: ${message}`),
    );
  beforeEach(() => outcomes.splice(0));

  test("others search while slow patterns run until they are given up", async () => {
    const search = (query: string) =>
      searchTools(
        { signal: never },
        { id: "1", tool: "tool-search", input: { query } },
        { tool: "tool-search", candidates },
        "regex",
      );
    const slow = Promise.allSettled([1, 2, 3].map(() => findSlowly(never, 300)));
    expect(await search("tool_7$")).toEqual({ kind: "tools", names: ["tool_7"] });
    for (const { status } of await slow) expect(status).toBe("rejected");
    expect(await search("tool_7$")).toEqual({ kind: "tools", names: ["tool_7"] });
  });

  test("the time that a search waits for a thread is part of its limit", async () => {
    const slow = [1, 2, 3, 4].map(() => noted("slow", findSlowly(never, 800)));
    await Promise.all([noted("waiting", find(200)), ...slow]);
    expect(outcomes[0]).toBe("waiting: The search took too long.");
  });

  test("a client that has left keeps neither its place nor its thread", async () => {
    const clients = [1, 2, 3, 4, 5].map(() => new AbortController());
    const slow = clients.slice(1).map(({ signal }) => noted("slow", findSlowly(signal, 5_000)));
    const [gone, running] = clients;
    const left = noted("left", find(5_000, gone!.signal));
    const next = noted("next", find(5_000));
    gone!.abort(new Error("it has left"));
    await left;
    expect(outcomes).toEqual(["left: it has left"]);
    running!.abort(new Error("it has left"));
    await next;
    expect(outcomes.toSorted()).toEqual(["left: it has left", "next: tool_7", "slow: it has left"]);
    for (const client of clients) client.abort(new Error("it has left"));
    await Promise.all(slow);
    await expect(find(5_000, gone!.signal)).rejects.toThrow("it has left");
  });

  test("only so many wait", async () => {
    const client = new AbortController();
    const slow = [1, 2, 3, 4].map(() => noted("slow", findSlowly(client.signal, 5_000)));
    const waiting = Array.from({ length: 60 }, () => noted("waiting", find(5_000, client.signal)));
    await noted("one more", find(5_000));
    expect(outcomes).toEqual(["one more: Too many searches wait for a thread."]);
    client.abort(new Error("it has left"));
    await Promise.all([...slow, ...waiting]);
    expect(await find(5_000)).toEqual(["tool_7"]);
  });
});
