/** Calls to GitHub: what they have in common, the login of a token, and the quota of an account. */

import { z } from "zod";
import { ProxyError } from "../../lib/errors";
import { parseJson } from "../../lib/json";
import { lazy } from "../../lib/lazy";
import { readStart, readText } from "../../lib/net/out/body";
import { singleLimit } from "../../lib/net/out/clock";
import { callOut } from "../../lib/net/out/fetch";
import { allowedModelHost, type Hosts, type Mode } from "./hosts";
import { isSuspensionAnswer, suspensionError, suspensionReason } from "./suspension";

export interface GithubCaller {
  hosts: Hosts;
  /** dragoman's version, for the headers that identify the client. */
  version: string;
  /** Milliseconds one call may take, its body included; 15 s. */
  timeoutMs?: number;
  signal?: AbortSignal;
  /** Called with each answer that holds a token or a quota. */
  answered?(where: "token" | "user", answer: unknown): void;
}

/** What an account shows to GitHub. */
export interface GithubToken {
  token: string;
  /** Milliseconds from now. */
  lifetime: number;
  /** Where GitHub's own Copilot CLI shows it, with the headers that it wants there. */
  endpoint?: { baseUrl: string; headers: Record<string, string> };
}

/** The login a GitHub token belongs to. @throws ProxyError `no_account` (revoked), `permission` (blocked), `upstream`, `timeout`. */
export async function fetchLogin(caller: GithubCaller, githubToken: string, mode: Mode): Promise<string> {
  const answer = await getFromGithub(caller, "/user", githubToken, mode, "2022-11-28");
  const read = userSchema().safeParse(answer.json);
  if (answer.status === 200 && read.success) return read.data.login;
  throw unexpectedAnswer(answer, "the login of this account");
}

export interface CopilotUser {
  login?: string;
  /** May differ from the host of the exchanged token, which counts. */
  endpoint?: string;
  /** The whole answer, for `quota.ts`. */
  answer: unknown;
}

/** Plan, quota and model host. @throws ProxyError `no_account` (revoked), `permission` (blocked), `upstream`, `timeout`. */
export async function fetchCopilotUser(caller: GithubCaller, githubToken: string, mode: Mode): Promise<CopilotUser> {
  const answer = await getFromGithub(caller, "/copilot_internal/user", githubToken, mode, copilotVersion);
  const read = copilotUserSchema().safeParse(answer.json);
  if (answer.status !== 200 || !read.success) throw unexpectedAnswer(answer, "the Copilot quota of this account");
  caller.answered?.("user", answer.json);
  const { login, endpoints } = read.data;
  return { login, endpoint: endpoints && allowedModelHost(endpoints.api, caller.hosts), answer: answer.json };
}

/** `X-GitHub-Api-Version` of the `/copilot_internal` calls, as the official client sends it. */
export const copilotVersion = "2025-04-01";

export const revoked =
  "GitHub no longer accepts its sign-in: it expired or was revoked. Sign in again, on the page Accounts or with `dragoman auth`.";

function unexpectedAnswer({ status, json }: GithubAnswer, what: string): ProxyError {
  const { message, code } = messageSchema().parse(json);
  if (isSuspensionAnswer(status, `${code} ${message}`))
    return suspensionError(suspensionReason(message.slice(0, 300) || code));
  if (status === 401) return new ProxyError("no_account", revoked, { code: "sign_in_revoked" });
  const detail = message ? `: ${message.slice(0, 300)}` : "";
  return new ProxyError("upstream", `GitHub did not state ${what} (status ${status}${detail}).`);
}

export interface GithubAnswer {
  status: number;
  headers: Headers;
  /** undefined if the body is not JSON, whatever its content type. */
  json: unknown;
}

/** A call to the REST host with an account's token. @throws ProxyError `upstream`, `timeout`. */
export const getFromGithub = (
  caller: GithubCaller,
  path: string,
  githubToken: string,
  mode: Mode,
  apiVersion: string,
): Promise<GithubAnswer> =>
  callGithub(caller, caller.hosts.api + path, {
    method: "GET",
    headers: {
      authorization: `${mode === "exchange" ? "token" : "Bearer"} ${githubToken}`,
      "x-github-api-version": apiVersion,
      "editor-version": `dragoman/${caller.version}`,
      "editor-plugin-version": `dragoman/${caller.version}`,
    },
  });

/** A POST to the REST host with the token of an App. @throws ProxyError `upstream`, `timeout`. */
export const postToGithubApi = (
  caller: GithubCaller,
  path: string,
  token: string,
  body: object,
  apiVersion: string,
): Promise<GithubAnswer> =>
  callGithub(caller, caller.hosts.api + path, {
    method: "POST",
    headers: {
      authorization: `Bearer ${token}`,
      "x-github-api-version": apiVersion,
      "content-type": "application/json",
    },
    body: JSON.stringify(body),
  });

/** A call to the web host without a token. @throws ProxyError `upstream`, `timeout`, or the signal's reason. */
export const postToGithub = (caller: GithubCaller, path: string, body: Record<string, string>): Promise<GithubAnswer> =>
  callGithub(caller, caller.hosts.web + path, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });

async function callGithub(
  { version, signal, timeoutMs = 15_000 }: GithubCaller,
  url: string,
  call: { method: "GET" | "POST"; headers: Record<string, string>; body?: string },
): Promise<GithubAnswer> {
  const response = await callOut(url, {
    ...call,
    headers: { accept: "application/json", "user-agent": `dragoman/${version}`, ...call.headers },
    signal,
    limits: singleLimit(timeoutMs),
    who: "GitHub",
  });
  const body = await (response.ok ? readText(response, 1024 * 1024) : readStart(response, 65_536));
  return { status: response.status, headers: response.headers, json: parseJson(body) };
}

export const endpointsSchema = lazy(() => z.object({ api: z.string() }).optional().catch(undefined));

const userSchema = lazy(() => z.object({ login: z.string().min(1) }));
const copilotUserSchema = lazy(() =>
  z.object({ login: z.string().optional().catch(undefined), endpoints: endpointsSchema() }),
);
const text = () => z.string().catch("");
const messageSchema = lazy(() => z.object({ message: text(), code: text() }).catch({ message: "", code: "" }));
