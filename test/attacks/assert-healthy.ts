/** What an attack must leave as it was, whatever its answer. */
import { expect } from "bun:test";
import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { ProxyError } from "../../src/lib/errors";
import type { RunningProxy } from "../support/proxy";

interface Answer {
  status: number;
  headers: Headers;
  text: string;
}

/**
 * One attack with all that is looked at after it: an answer below 500 under an id of our own, no call upstream, no file
 * of the data folder touched or added, at most the stated number of new rows, and a proxy that serves the next caller.
 */
export async function attack(
  proxy: RunningProxy,
  path: string,
  init: RequestInit & { rows?: number } = {},
): Promise<Answer> {
  return untouched(
    proxy,
    async () => {
      const response = await fetch(proxy.url + path, init);
      const answer = { status: response.status, headers: response.headers, text: await response.text() };
      expect(answer.status).toBeLessThan(500);
      expect(answer.headers.get("x-request-id")).toMatch(/^[0-9a-f]{8}-[0-9a-f-]{27}$/);
      expect([...answer.headers.keys()].filter((name) => name.startsWith("access-control"))).toEqual([]);
      return answer;
    },
    init.rows,
  );
}

/**
 * Does what sends nothing upstream, touches and adds no file of the data folder, adds this number of rows and no more, and leaves a
 * proxy that serves the next caller.
 */
export async function untouched<Result>(proxy: RunningProxy, work: () => Promise<Result>, rows = 0): Promise<Result> {
  const before = stateOf(proxy);
  const result = await work();
  expect(stateOf(proxy)).toEqual({ ...before, rows: before.rows + rows });
  expect((await fetch(`${proxy.url}/health`)).status).toBe(200);
  return result;
}

function stateOf(proxy: RunningProxy) {
  proxy.history.flush();
  return { rows: proxy.history.count(), upstream: proxy.demo.journal.length, files: filesOf(proxy.home) };
}

/** Every file with the digest of its bytes; of the history, which may grow, the name alone. */
function filesOf(home: string): Record<string, string> {
  return Object.fromEntries(
    readdirSync(home, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => {
        const path = join(entry.parentPath, entry.name);
        const kept = entry.name.startsWith("admin.sqlite");
        return [path, kept ? "" : createHash("sha256").update(readFileSync(path)).digest("hex")];
      }),
  );
}

const googleTypes: Record<string, string> = {
  "401 UNAUTHENTICATED": "authentication_error",
  "403 PERMISSION_DENIED": "permission_error",
};

/** The error of an answer, in the shape that its path speaks. */
export function errorOf(path: string, { headers, text }: Answer): { type: string; code?: string; message: string } {
  const body = JSON.parse(text);
  if (path.startsWith("/api/admin")) expect(Object.keys(body)).toEqual(["error"]);
  else if (path.startsWith("/v1beta/")) {
    const { code, message, status } = body.error;
    expect(body.error).toMatchObject({
      code: expect.any(Number),
      message: expect.any(String),
      status: expect.any(String),
    });
    // Google names an error by its status alone.
    return { type: googleTypes[`${code} ${status}`] ?? status, message };
  } else if (/^\/(?:v1\/(?:messages|metrics|logs|traces)|managed\/|api\/oauth\/|(?!v1)[^/]+\/v1\/)/.test(path))
    expect(body).toEqual({
      type: "error",
      error: { type: expect.any(String), message: expect.any(String) },
      request_id: headers.get("x-request-id"),
    });
  else
    expect(body).toEqual({
      error: {
        message: expect.any(String),
        type: expect.any(String),
        param: body.error.param === null ? null : expect.any(String),
        code: body.error.code === null ? null : expect.any(String),
      },
    });
  return body.error;
}

/** The result, or nothing where it was refused in words; anything else thrown is a crash. */
export function only<T>(work: () => T): T | undefined {
  try {
    return work();
  } catch (thrown) {
    if (thrown instanceof ProxyError && thrown.status < 500) return undefined;
    throw thrown;
  }
}
