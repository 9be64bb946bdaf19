/** The server that runs on this machine, as a client of it: where it is, its key, and what it answers. */

import type { z } from "zod";
import { besideTheReal, type Environment } from "../config/environment";
import { openConfig } from "../config/store";
import { asProxyError, ProxyError } from "../errors";
import { isObject, parseJson } from "../json";
import { callOut, readBody } from "../net/fetch";
import { findRunning } from "./running";

export interface RunningServer {
  url: string;
  demo: boolean;
  /** What it asks of a client, where it asks for one. */
  key?: string;
  adminToken?: string;
}

/** The one of this data folder, of which `environment` is. */
export function serverOf({ home, configFile, clientKey, adminToken }: Environment): RunningServer | undefined {
  const running = findRunning(home);
  if (!running) return undefined;
  const { apiKeys } = openConfig(configFile).current.auth;
  return { url: running.url, demo: false, key: apiKeys[0] ?? clientKey, adminToken };
}

/** The real one, or else the demo, which has a data folder of its own below the real one. */
export function findServer(environment: Environment): RunningServer | undefined {
  const real = serverOf(environment);
  if (real) return real;
  const demo = serverOf(besideTheReal(environment));
  return demo && { ...demo, demo: true };
}

/** @throws ProxyError that says how to start one. */
export function theServer(environment: Environment): RunningServer {
  const server = findServer(environment);
  if (server) return server;
  throw new ProxyError(
    "internal",
    "No dragoman runs on this machine. Start it with `dragoman start` (or `dragoman start --demo`), then try again.",
  );
}

export interface Question {
  path: string;
  method?: string;
  headers?: Record<string, string>;
  body?: object;
  /** Milliseconds until the answer begins; half a minute unless told. */
  within?: number;
}

/** What it answers, as JSON. @throws ProxyError in words for the person, also for an answer that is an error. */
export async function ask(server: RunningServer, question: Question): Promise<unknown> {
  const who = `The server at ${server.url}`;
  const { path, method = "GET", headers = {}, body, within = 30_000 } = question;
  const response = await callOut(server.url + path, {
    method,
    headers: {
      "user-agent": "dragoman",
      ...(server.key !== undefined && { "x-api-key": server.key }),
      ...(body && { "content-type": "application/json" }),
      ...headers,
    },
    body: body && JSON.stringify(body),
    headersWithin: within,
    who,
  }).catch((thrown) => {
    const error = asProxyError(thrown);
    if (error.details.code !== "upstream_unreachable") throw error;
    throw new ProxyError(
      "upstream",
      `${who} does not answer. Is it stopping? \`dragoman start\` starts one.`,
      error.details,
    );
  });
  const text = Buffer.from(await readBody(response, 16 * 1024 * 1024, who)).toString();
  const answer = parseJson(text);
  if (response.ok && answer !== undefined) return answer;
  throw new ProxyError("upstream", `${who} ${faultIn(path, response.status, answer)}`);
}

/** An answer of this shape. @throws ProxyError when it is another: the server may be older than the command. */
export function readAs<Answer>(shape: z.ZodType<Answer>, answer: unknown, { url }: RunningServer): Answer {
  const read = shape.safeParse(answer);
  if (read.success) return read.data;
  throw new ProxyError(
    "upstream",
    `The server at ${url} answered in a way that this version does not know. Start it again with this version.`,
    { cause: read.error },
  );
}

function faultIn(path: string, status: number, answer: unknown): string {
  if (status === 401 && path.startsWith("/api/admin"))
    return "asks for its admin token: set ADMIN_TOKEN here as where it was started.";
  if (status === 401)
    return "asks for a client key that is not known here: set DRAGOMAN_API_KEY here as where it was started.";
  const error = isObject(answer) && isObject(answer.error) ? answer.error.message : undefined;
  return typeof error === "string"
    ? `answered ${status}: ${error.replace(/[\p{C}\s]+/gu, " ")}`
    : `answered with status ${status}.`;
}
