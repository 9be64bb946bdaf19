/**
 * Rows: what requests cost beside time: each line that a small one runs is one that a newcomer follows, each object that it
 * makes has to be collected, and what nobody asked for is not loaded. The limits are what was reached in November 2026 and a
 * little more.
 */
import { expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { clientPath, modelOf, requestBody } from "../bench/dialects";
import { load, startDragoman, startUpstream, subjects } from "../bench/processes";
import { linesOfRequests, nameOf, sumOf } from "../bench/request-lines";
import { objectsOfRequest, totalOf } from "../bench/request-objects";
import { growthOf } from "../bench/statistics";

const mostLines = [
  [{ dialect: "chat", stream: false }, 2_180],
  [{ dialect: "chat", stream: true }, 2_490],
  [{ dialect: "responses", stream: false }, 2_180],
  [{ dialect: "responses", stream: true }, 2_660],
  [{ dialect: "messages", stream: false }, 2_145],
  [{ dialect: "messages", stream: true }, 2_515],
] as const;

test("a small request runs few lines of src", async () => {
  const found = await linesOfRequests(mostLines.map(([asked]) => asked));
  for (const [at, [asked, limit]] of mostLines.entries()) expect(sumOf(found[at]!), nameOf(asked)).toBeLessThan(limit);
}, 60_000);

test.each(["chat", "responses", "messages"] as const)(
  "a small request for %s makes few objects",
  async (dialect) => {
    const upstream = await startUpstream();
    try {
      expect(totalOf(await objectsOfRequest(upstream, dialect, false))).toBeLessThan(430);
    } finally {
      await upstream.stop();
    }
  },
  60_000,
);

const threadsOf = (pid: number) =>
  readdirSync(`/proc/${pid}/task`).map((thread) => readFileSync(`/proc/${pid}/task/${thread}/comm`, "utf8").trim());

test("an agent's first prompts start no thread: nobody has asked for a count, and the vocabulary takes 50 MiB", async () => {
  const upstream = await startUpstream();
  const dragoman = await startDragoman(subjects.source, upstream);
  try {
    const url = dragoman.url + clientPath.messages;
    const prompt = (model: string) => requestBody("messages", model, true, 100_000);
    const { growth } = await growthOf(dragoman.pid, async () => {
      for (const model of [modelOf("messages"), modelOf("chat")])
        await load({ kind: "requests", url, body: prompt(model), connections: 1, count: 5 });
    });
    expect([threadsOf(dragoman.pid).filter((name) => name === "Worker"), growth < 40]).toEqual([[], true]);
    const body = requestBody("messages", modelOf("messages"), false, 100_000);
    await load({ kind: "requests", url: `${url}/count_tokens`, body, connections: 1, count: 1 });
    expect(threadsOf(dragoman.pid)).toContain("Worker");
  } finally {
    await dragoman.stop();
    await upstream.stop();
  }
}, 60_000);
