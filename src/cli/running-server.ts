/** A client of the dragoman server that runs on this machine: finds its address and key, and calls it. */

import { z } from "zod";
import { demoEnvironments, type Environment } from "../config/environment";
import { lookAtConfig } from "../config/read-config";
import { asProxyError, ProxyError } from "../lib/errors";
import { isObject, parseJson } from "../lib/json";
import { type CallResponse, readText } from "../lib/net/out/body";
import { callServer, isAdmin, type ServerRequest, whoIs } from "./call-server";
import type { BodyAt, More, PathOf, Said, SaidAt } from "./server-routes";
import { findInstance, type Instance } from "./start/instance-file";

export interface RunningServer {
  url: string;
  pid: number;
  /** It ends with the program that started it. */
  isTied?: boolean;
  demo: boolean;
  /** The client keys that the server may require, the likeliest first. `ask` moves the accepted key to the front. */
  keys: KnownKey[];
  /** Why the keys of the config could not be read, in a sentence. */
  configFault?: string;
  adminToken?: string;
  /** It runs elsewhere, and this machine is signed in there as a member: `dragoman login`. */
  isElsewhere?: true;
}

export interface KnownKey {
  value: string;
  from: "config.json" | "DRAGOMAN_API_KEY" | "the settings";
}

/** The server of this data folder. */
export function serverOf(environment: Environment): RunningServer | undefined {
  const { home, adminToken } = environment;
  const running = findInstance(home);
  return running && { ...running, demo: false, adminToken, ...keysIn(environment) };
}

/** The records of running servers: that of the data folder, then the demo's. Changes nothing, not even the rights of files. */
export const recordedIn = (environment: Environment): Instance[] =>
  [environment, ...demoEnvironments(environment)].flatMap(({ home }) => findInstance(home, { tighten: false }) ?? []);

/** Whether the demo runs beside; changes nothing either. */
export const isDemoRunning = (environment: Environment): boolean =>
  demoEnvironments(environment).some(({ home }) => findInstance(home, { tighten: false }));

/**
 * The keys of the config file and of the environment: a running server may still require a key that is no longer in the
 * file. If the file cannot be read, the other keys are still tried.
 */
function keysIn({ configFile, clientKey, databaseUrl }: Environment): Pick<RunningServer, "keys" | "configFault"> {
  const own: KnownKey[] = clientKey === undefined ? [] : [{ value: clientKey, from: "DRAGOMAN_API_KEY" }];
  // In a database only the hashes of keys are found, and config.json is not used.
  if (databaseUrl !== undefined) return { keys: own };
  try {
    const stored = lookAtConfig(configFile)?.config.auth.apiKeys ?? [];
    const values = stored.flatMap((each) => (typeof each === "string" ? each : (each.key ?? [])));
    return { keys: [...values.map((value): KnownKey => ({ value, from: "config.json" })), ...own] };
  } catch (thrown) {
    return { keys: own, configFault: asProxyError(thrown).message };
  }
}

/** The demo server. Its data folder is inside the real one. */
export function demoOf(environment: Environment): RunningServer | undefined {
  const [demo] = demoEnvironments(environment).flatMap((each) => serverOf(each) ?? []);
  return demo && { ...demo, demo: true };
}

/** The real server, or else the demo. */
export const findServer = (environment: Environment): RunningServer | undefined =>
  serverOf(environment) ?? demoOf(environment);

/** Printed before answers of the demo. */
export const demoNotice = "DEMO: answers are scripted, and nothing is charged.";

/** What a command says that works on the real config while only the demo runs; nothing otherwise. @param what The end of the sentence. */
export const besideDemo = (environment: Environment, what: string): string[] =>
  !serverOf(environment) && demoOf(environment)
    ? [`Only the demo is running: ${what}, which the demo does not use.`]
    : [];

/** @throws ProxyError that says how to start one. */
export function requireServer(environment: Environment): RunningServer {
  const server = findServer(environment);
  if (server) return server;
  throw new ProxyError(
    "internal",
    "No dragoman server is running on this machine. Start one with `dragoman start` (or `dragoman start --demo`), then try again.",
  );
}

/** What a route answers to GET, parsed. @throws ProxyError if there is no answer, or if it is an error */
export const ask = <Path extends PathOf<"get">>(
  server: RunningServer,
  path: Path,
  ...[more]: More<"get", Path>
): Promise<SaidAt<"get", Path>> => exchange(server, path, more as Details);

/** The same for a POST of JSON. */
export const send = <Path extends PathOf<"post">>(
  server: RunningServer,
  path: Path,
  body: BodyAt<Path> & object,
  ...[more]: More<"post", Path>
): Promise<SaidAt<"post", Path>> => exchange(server, path, { ...(more as Details), method: "POST", body });

interface Details extends Omit<ServerRequest, "path"> {
  params?: Record<string, string>;
  query?: Record<string, string>;
}

async function exchange(server: RunningServer, path: string, details: Details = {}): Promise<Said<never>> {
  const { params = {}, query, ...rest } = details;
  const filled = path.replace(/(?<=\/)(?::\w+|\*)/g, (name) => encodeURIComponent(params[name.replace(":", "")]!));
  const asked = query ? `?${new URLSearchParams(query)}` : "";
  return answerIn(await askWithKeys(server, { ...rest, path: filled + asked }), server, path);
}

/** @throws ProxyError if it is an error, whose code is the type that the server says */
async function answerIn(response: CallResponse, server: RunningServer, path: string): Promise<Said<never>> {
  const text = await readText(response, 16 * 1024 * 1024);
  const answer = parseJson(text);
  if (response.ok && answer !== undefined) return answer as Said<never>;
  const error = isObject(answer) && isObject(answer.error) ? answer.error : {};
  const sentence = `${whoIs(server)} ${faultIn(server, path, response.status, error.message)}`;
  throw new ProxyError("upstream", sentence, typeof error.type === "string" ? { code: error.type } : {});
}

/** Whether the server serves this client key; without one, whether it serves clients that send none. Costs nothing. */
export async function isAccepted(url: string, key: string | undefined): Promise<boolean> {
  const question = { path: "/v1/models" satisfies PathOf<"get">, timeoutMs: 8_000 };
  const { status, body } = await callServer({ url }, question, key || undefined);
  body.cancel();
  return status !== 401;
}

/** The first known key that the server accepts. */
export async function acceptedKey({ url, keys }: RunningServer): Promise<KnownKey | undefined> {
  for (const key of keys) if (await isAccepted(url, key.value)) return key;
  return undefined;
}

/** Why the server serves none of the known keys, and what to do. */
export const noAcceptedKey = (server: RunningServer): ProxyError =>
  new ProxyError("authentication", `${whoIs(server)} ${keyFault(server)}`);

/**
 * Asks the admin API, which takes no client key on the owner's machine.
 * @returns Undefined if it wants an admin token that is not set here: some of its answers a client gets too.
 */
export async function askAsOwner<Path extends PathOf<"get">>(
  server: RunningServer,
  path: Path,
): Promise<SaidAt<"get", Path> | undefined> {
  const response = await callServer(server, { path });
  if ((server.adminToken !== undefined && !server.isElsewhere) || (response.status !== 401 && response.status !== 403))
    return answerIn(response, server, path);
  response.body.cancel();
  return undefined;
}

/** Tries each known key until the server accepts one. */
async function askWithKeys(server: RunningServer, question: ServerRequest): Promise<CallResponse> {
  const [first, ...others] = server.keys;
  const response = await callServer(server, question, first?.value);
  if (isAdmin(question.path)) return response;
  for (const key of response.status === 401 ? others : []) {
    const next = await callServer(server, question, key.value);
    if (next.status === 401) {
      next.body.cancel();
      continue;
    }
    response.body.cancel();
    server.keys = [key, ...server.keys.filter((other) => other !== key)];
    return next;
  }
  return response;
}

/**
 * What a server says without a key or token within two seconds.
 * @returns The answer as far as it has this shape; undefined if nobody answers, or another program does.
 */
export async function lookAt<Answer>(url: string, path: PathOf<"get">, shape: z.ZodType<Answer>) {
  try {
    const response = await callServer({ url }, { path, timeoutMs: 2000 });
    return {
      ok: response.ok,
      status: response.status,
      answer: shape.parse(JSON.parse(await readText(response, 65_536))),
    };
  } catch {
    return undefined;
  }
}

/** The list that the admin API answers, each item with these members. */
export const itemsOf = <Item>(item: z.ZodType<Item>) => z.object({ items: z.array(item) });

/** The server's answer, validated. @throws ProxyError if its shape differs: the server may be another version */
export function readAs<Answer>(shape: z.ZodType<Answer>, answer: Said<Answer>, { url }: RunningServer): Answer {
  const read = shape.safeParse(answer);
  if (read.success) return read.data;
  throw new ProxyError(
    "upstream",
    `The server at ${url} sent a response that this version does not understand. Restart it with this version.`,
    { cause: read.error },
  );
}

function faultIn(server: RunningServer, path: string, status: number, message: unknown): string {
  if (status === 401 && isAdmin(path))
    return "requires its admin token: set ADMIN_TOKEN here to the value it was started with.";
  if (status === 401) return keyFault(server);
  return typeof message === "string"
    ? `answered ${status}: ${message.replace(/[\p{C}\s]+/gu, " ")}`
    : `answered with status ${status}.`;
}

/** Which keys the server refused, and how to fix that: it requires the key that it was started with. */
function keyFault({ keys, configFault }: RunningServer): string {
  const tried = [...new Set(keys.map(({ from }) => from))];
  const refused = tried.length === 0 ? "that is not configured here" : `other than the one in ${tried.join(" and ")}`;
  const advice = "set DRAGOMAN_API_KEY here to the key it was started with";
  if (configFault !== undefined)
    return `requires a client key ${refused}: fix the config file or ${advice}. ${configFault}`;
  return tried.includes("config.json")
    ? `requires a client key ${refused}: a key that was changed in the file takes effect at the next start. Restart the server, or ${advice}.`
    : `requires a client key ${refused}: ${advice}.`;
}
