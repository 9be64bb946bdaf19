/**
 * `dragoman login`, `logout` and `key print --from`: signs this machine in to a team elsewhere by the device flow (RFC 8628), and
 * gives its tools keys that last an hour and renew themselves.
 */
import { z } from "zod";
import type { Environment } from "../config/environment";
import { ensurePrivateFolder, readPrivate, writePrivate } from "../config/files";
import { inHome } from "../config/home-names";
import { withLock } from "../config/lock";
import { gatewayPaths } from "../lib/api-paths";
import { ProxyError } from "../lib/errors";
import { parseJson } from "../lib/json";
import { isLoopbackUrl } from "../lib/net/address";
import { readText } from "../lib/net/out/body";
import { singleLimit } from "../lib/net/out/clock";
import { callOut } from "../lib/net/out/fetch";
import { openBrowser } from "./desktop";
import type { RunningServer } from "./running-server";
import { atTerminal, bold, countdown, interrupted, print, say } from "./terminal";
import { UsageError } from "./usage-error";

interface LoginOptions {
  environment: Environment;
  /** `https://dragoman.example` */
  address?: string;
}

const savedLogin = z.object({
  address: z.string(),
  member: z.string(),
  accessToken: z.string(),
  refreshToken: z.string(),
  /** Timestamp, ms. */
  expiresAt: z.number(),
});
type SavedLogin = z.infer<typeof savedLogin>;

const begunSchema = z.object({
  device_code: z.string().min(1),
  user_code: z.string().regex(/^[\w-]{4,40}$/),
  verification_uri: z.url(),
  verification_uri_complete: z.url().optional(),
  expires_in: z.number().positive().max(3_600),
  interval: z.number().min(0).max(60).default(5),
});

const tokensSchema = z.object({
  access_token: z.string().min(1),
  refresh_token: z.string().min(1),
  expires_in: z.number().positive(),
  email: z.string().default("a member"),
});

/** Milliseconds before its end at which a key is renewed, and until which the present one serves if that is not possible. */
const [renewBefore, serveUntil] = [5 * 60_000, 5_000];
/** Milliseconds for an answer of the server, and for another process that renews. */
const [answerMs, renewalMs] = [15_000, 20_000];
const deviceGrant = "urn:ietf:params:oauth:grant-type:device_code";

/** Signs in, and prints what tools can do with it. */
export async function login({ environment, address: given }: LoginOptions): Promise<number> {
  const address = addressOf(given);
  const begun = readAs(begunSchema, await post(address, gatewayPaths.device, { surface: "dragoman login" }), address);
  const page = begun.verification_uri_complete ?? begun.verification_uri;
  if ([begun.verification_uri, page].some((each) => new URL(each).origin !== address))
    throw new ProxyError("upstream", `${address} leads to another address for the sign-in, which is not trusted.`);
  const opened = atTerminal() && openBrowser(page) ? "Your browser opens" : "Open";
  say(`${opened} ${bold(page)}`, `and confirm the code ${bold(begun.user_code)}, if the page shows the same one.`, "");
  const stop = atTerminal()
    ? countdown(begun.expires_in, (left) => `Waiting: ${left} left; press Ctrl-C to cancel.`)
    : () => {};
  try {
    const tokens = await untilConfirmed(address, begun, interrupted());
    let before: SavedLogin | undefined;
    await change(environment, (all) => {
      before = all.find((each) => each.address === address);
      return [...all.filter((each) => each !== before), savedOf(address, tokens)];
    });
    stop();
    say(`Signed in at ${address} as ${bold(tokens.email)}.`);
    if (before && !(await revoke(address, before.refreshToken)))
      say(`${address} could not be told that the sign-in before has ended: revoke its key on the page Keys.`);
    say(`\`dragoman connect <tool> --write --from ${address}\` sets a tool up with it.`);
    return 0;
  } finally {
    stop();
  }
}

async function untilConfirmed(address: string, begun: z.infer<typeof begunSchema>, signal: AbortSignal) {
  const deadline = performance.now() + begun.expires_in * 1_000;
  let seconds = begun.interval;
  while (performance.now() < deadline) {
    await Bun.sleep(seconds * 1_000);
    signal.throwIfAborted();
    const grant = { grant_type: deviceGrant, device_code: begun.device_code };
    const answer = await ask(address, gatewayPaths.token, grant).catch((thrown) => {
      if (!(thrown instanceof ProxyError)) throw thrown;
      return undefined;
    });
    // It may be restarted while the person is at the page.
    if (!answer || answer.isAway) continue;
    const tokens = tokensSchema.safeParse(answer.json);
    if (answer.ok && tokens.success) return tokens.data;
    // A proxy shows a page of its own.
    if (answer.ok) continue;
    if (answer.error === "slow_down") seconds += 5;
    else if (answer.error !== "authorization_pending") throw refusedBy(address, answer.error);
  }
  throw refusedBy(address, "expired_token");
}

/** Signs out, at the server too. */
export async function logout({ environment, address: given }: LoginOptions): Promise<number> {
  const { address, refreshToken } = loginAt(environment, given);
  await change(environment, (all) => all.filter((each) => each.address !== address));
  say(
    (await revoke(address, refreshToken))
      ? `Signed out at ${address}: its key is revoked.`
      : `Signed out here. ${address} could not be told: revoke the key on its page Keys.`,
  );
  return 0;
}

/** @returns Whether the server could be told. */
async function revoke(address: string, refreshToken: string): Promise<boolean> {
  const answer = await ask(address, gatewayPaths.revoke, { token: refreshToken }).catch(() => undefined);
  return answer?.ok === true;
}

/** Prints a key that is good for some minutes at least, and nothing else, on stdout: for settings such as `apiKeyHelper`. */
export async function printKey({ environment, address }: LoginOptions): Promise<number> {
  print((await currentLogin(environment, address)).accessToken);
  return 0;
}

/** The server that this machine is signed in to, as commands call it. @throws UsageError, ProxyError */
export async function signedInServer(environment: Environment, given: string): Promise<RunningServer> {
  const { address, accessToken } = await currentLogin(environment, given);
  const keys: RunningServer["keys"] = [{ value: accessToken, from: "the settings" }];
  return { url: address, pid: 0, demo: false, keys, adminToken: accessToken, isElsewhere: true };
}

/**
 * The login, renewed if its key ends soon. One process renews at a time, because a refresh token is good once; meanwhile, and if
 * the server does not answer, the present key serves the others for as long as it is good.
 */
async function currentLogin(environment: Environment, given: string | undefined): Promise<SavedLogin> {
  const known = loginAt(environment, given);
  if (leftOf(known) > renewBefore) return known;
  const isGood = leftOf(known) > serveUntil;
  const renewal = () => {
    const present = loginAt(environment, known.address);
    return leftOf(present) > renewBefore ? present : renewed(environment, present);
  };
  try {
    // Its own lock, because the one of the file is held for milliseconds only.
    return await withLock(`${fileOf(environment)}.renewal`, renewal, isGood ? 0 : renewalMs);
  } catch (thrown) {
    if (isGood && thrown instanceof ProxyError && !(thrown instanceof SignInOver)) return known;
    throw thrown;
  }
}

const leftOf = ({ expiresAt }: SavedLogin) => expiresAt - Date.now();

/** @throws SignInOver if the sign-in has ended; ProxyError if the server gives no tokens now. */
async function renewed(environment: Environment, { address, refreshToken }: SavedLogin): Promise<SavedLogin> {
  const answer = await ask(address, gatewayPaths.token, { grant_type: "refresh_token", refresh_token: refreshToken });
  if (!answer.ok) throw refusedBy(address, answer.error);
  const login = savedOf(address, readAs(tokensSchema, answer.json, address));
  // Whoever has signed in anew or out meanwhile has the last word.
  await change(environment, (all) => all.map((each) => (each.refreshToken === refreshToken ? login : each)));
  return login;
}

const savedOf = (address: string, tokens: z.infer<typeof tokensSchema>): SavedLogin => ({
  address,
  member: tokens.email,
  accessToken: tokens.access_token,
  refreshToken: tokens.refresh_token,
  expiresAt: Date.now() + tokens.expires_in * 1_000,
});

/** @throws UsageError if the address is not one, or not https. */
function addressOf(given: string | undefined): string {
  if (given === undefined) throw new UsageError("Name the address, such as https://dragoman.example.");
  const url = URL.parse(/^https?:/i.test(given) ? given : `https://${given}`);
  if (!url || url.username || url.password) throw new UsageError(`${given} is not an address.`);
  if (url.protocol !== "https:" && !isLoopbackUrl(url.href))
    throw new UsageError(`${url.origin} is not encrypted: use https. Only this machine's own addresses may be http.`);
  return url.origin;
}

/** @param given May be left out where there is only one. */
function loginAt(environment: Environment, given: string | undefined): SavedLogin {
  const all = read(environment);
  const address = given === undefined ? undefined : addressOf(given);
  const found =
    address === undefined ? (all.length === 1 ? all[0] : undefined) : all.find((each) => each.address === address);
  if (found) return found;
  throw new UsageError(
    address === undefined && all.length > 1
      ? `Name the address: ${all.map((each) => each.address).join(", ")}.`
      : `This machine is not signed in${address === undefined ? "" : ` at ${address}`}. Run \`dragoman login ${address ?? "<address>"}\`.`,
  );
}

const fileOf = ({ home }: Environment) => inHome(home, "logins");
const maxBytes = 256 * 1024;

function read(environment: Environment): SavedLogin[] {
  const text = readPrivate(fileOf(environment), maxBytes);
  const saved = z.array(savedLogin).safeParse(text === undefined ? [] : parseJson(text));
  if (saved.success) return saved.data;
  throw new ProxyError("conflict", `${fileOf(environment)} cannot be read: remove it, and sign in again.`);
}

const write = (environment: Environment, all: readonly SavedLogin[]) =>
  writePrivate(fileOf(environment), `${JSON.stringify(all, null, 2)}\n`);

async function change(environment: Environment, next: (all: SavedLogin[]) => SavedLogin[]): Promise<void> {
  ensurePrivateFolder(environment.home, say);
  await withLock(`${fileOf(environment)}.lock`, () => write(environment, next(read(environment))));
}

interface OauthAnswer {
  ok: boolean;
  /** The server, or a proxy before it, cannot say anything now. */
  isAway: boolean;
  json: unknown;
  error: string;
}

const oauthError = z.object({ error: z.string() });

async function ask(address: string, path: string, fields: Record<string, string>): Promise<OauthAnswer> {
  const response = await callOut(address + path, {
    method: "POST",
    headers: { "content-type": "application/x-www-form-urlencoded", "user-agent": "dragoman" },
    body: new URLSearchParams(fields).toString(),
    limits: singleLimit(answerMs),
    who: address,
  });
  const json = parseJson((await readText(response, 64 * 1024)) || "null");
  const failed = oauthError.safeParse(json);
  const error = failed.success ? failed.data.error : `status ${response.status}`;
  return { ok: response.ok, isAway: response.status >= 500, json, error };
}

function readAs<T>(schema: z.ZodType<T>, json: unknown, address: string): T {
  const read = schema.safeParse(json);
  if (read.success) return read.data;
  throw new ProxyError("upstream", `${address} does not answer as a dragoman server does: check the address.`);
}

async function post(address: string, path: string, fields: Record<string, string>): Promise<unknown> {
  const answer = await ask(address, path, fields);
  if (answer.ok) return answer.json;
  throw refusedBy(address, answer.error);
}

const reasons: Record<string, string> = {
  access_denied: "somebody denied the sign-in on the page",
  expired_token: "nobody confirmed the code in time: run `dragoman login` again",
  invalid_grant: "the sign-in has ended, or its member was removed: run `dragoman login` again",
  slow_down: "too many sign-ins wait there: try again in some minutes",
};

/** The sign-in has ended, and its key with it. */
class SignInOver extends ProxyError {}

function refusedBy(address: string, error: string): ProxyError {
  const reason = reasons[error] ?? error.replace(/[\p{C}\s]+/gu, " ").slice(0, 200);
  return new (error === "invalid_grant" ? SignInOver : ProxyError)("authentication", `${address} refused: ${reason}.`);
}
