/**
 * The installation of a GitHub App in an organization, which pays for its requests: no person's seat is used. The App signs a
 * JSON Web Token with its private key, GitHub gives a token of the installation for it, and that one is shown to Copilot.
 *
 * Documented are these two calls (docs.github.com, "Authenticating as a GitHub App installation") and that Copilot takes such a
 * token in GitHub's own runtime (copilot-sdk, "Server-to-server authentication", 2026-11). How another client uses it is not.
 */
import { createPrivateKey, type KeyObject, sign } from "node:crypto";
import { z } from "zod";
import { ProxyError } from "../../lib/errors";
import { hourMs, minuteMs } from "../../lib/format";
import { entryOf } from "../../lib/json";
import { lazy } from "../../lib/lazy";
import type { AppInstallation } from "./account-store";
import { type GithubAnswer, type GithubCaller, type GithubToken, getFromGithub, postToGithubApi } from "./github";

/** What GitHub says of an installation. */
interface InstallationFacts {
  /** The login of the organization. */
  owner: string;
  /** What a token is asked for, and what the App has been granted. */
  permissions: Record<string, string>;
}

export interface GithubApp {
  /** The App ID, or the client id. */
  app: string;
  installation: AppInstallation;
}

const apiVersion = "2022-11-28";

/**
 * @throws ProxyError `no_account` with what a person has to change, `upstream` or `timeout` if GitHub cannot be asked
 * @returns Whose installation it is.
 */
export async function lookUpInstallation(caller: GithubCaller, given: GithubApp): Promise<InstallationFacts> {
  const { app, installation } = given;
  const jwt = appToken(given);
  const answer = await getFromGithub(caller, `/app/installations/${installation.id}`, jwt, "direct", apiVersion);
  const read = installationSchema().safeParse(answer.json);
  if (answer.status !== 200 || !read.success) throw refused(answer, given);
  const { account, permissions, repository_selection, suspended_at } = read.data;
  if (suspended_at)
    throw mustAct(`The installation of the App ${app} is suspended. An owner of ${account.login} has to unsuspend it.`);
  return { owner: account.login, permissions: wantedPermissions(account.login, permissions, repository_selection) };
}

/** A token for Copilot requests alone, for an hour as GitHub states it. @throws ProxyError as {@link lookUpInstallation} */
export async function mintInstallationToken(caller: GithubCaller, given: GithubApp): Promise<GithubToken> {
  const { id, repository } = given.installation;
  const { permissions } = await lookUpInstallation(caller, given);
  const body = { permissions, ...(repository && { repository_ids: [Number(repository)] }) };
  const path = `/app/installations/${id}/access_tokens`;
  const answer = await postToGithubApi(caller, path, appToken(given), body, apiVersion);
  const read = tokenSchema().safeParse(answer.json);
  if (answer.status >= 300 || !read.success) throw refused(answer, given);
  const { token, expires_at } = read.data;
  // By GitHub's clock: this machine's may be wrong.
  const left = Date.parse(expires_at) - Date.parse(answer.headers.get("date") ?? new Date().toUTCString());
  return { token, lifetime: left > 0 && left <= 2 * hourMs ? left : hourMs };
}

/**
 * The permission under each of the names that GitHub's pages have had: of the organization (2026-11), before that of
 * repositories, of which all were required (2026-07).
 */
function wantedPermissions(
  owner: string,
  granted: Record<string, string>,
  repositories: string,
): Record<string, string> {
  if (granted.organization_copilot_requests) return { organization_copilot_requests: "read" };
  if (granted.copilot_requests !== "write")
    throw mustAct(
      `The App may not make Copilot requests for ${owner}: give it the organization permission “Copilot Requests” (read), which an owner of ${owner} then has to accept.`,
    );
  if (repositories !== "all")
    throw mustAct(
      `The App has the repository permission “Copilot Requests”, and at ${owner} selected repositories only, where Copilot wants all: choose “All repositories” for its installation, or give it the organization permission of that name instead.`,
    );
  return { copilot_requests: "write" };
}

/**
 * Accepted for ten minutes at most; it begins a minute ago, as clocks differ.
 * @throws ProxyError `invalid_request` if the key is none
 */
function appToken({ app, installation }: GithubApp): string {
  const seconds = Math.floor((Date.now() - minuteMs) / 1000);
  const encoded = (part: object) => Buffer.from(JSON.stringify(part)).toString("base64url");
  const claims = { iat: seconds, exp: seconds + 9 * 60, iss: app };
  const signed = `${encoded({ alg: "RS256", typ: "JWT" })}.${encoded(claims)}`;
  return `${signed}.${sign("sha256", Buffer.from(signed), keyOf(installation.privateKey)).toString("base64url")}`;
}

/** @throws ProxyError `invalid_request`, which does not quote it */
function keyOf(privateKey: string): KeyObject {
  try {
    const key = createPrivateKey(privateKey);
    if (key.asymmetricKeyType === "rsa") return key;
  } catch {} // said below
  throw new ProxyError(
    "invalid_request",
    "The private key cannot be read: it is the whole text of the .pem file that GitHub offers for the App, from -----BEGIN to -----END, without a passphrase.",
    { param: "private_key" },
  );
}

const mustAct = (sentence: string) => new ProxyError("no_account", sentence, { code: "installation_refused" });

/** By status, as GitHub's REST documents list them; the rest may pass. */
const refusals: Record<string, (said: string, given: GithubApp, answer: GithubAnswer) => string> = {
  401: (said, { app }, answer) =>
    `GitHub does not accept the key of the App ${app}${said}: the App ID and the private key do not belong together, the key was deleted at GitHub, or this machine's clock is wrong${offBy(answer)}.`,
  403: (said, { app }) => `GitHub gives the App ${app} no token for this installation${said}.`,
  404: (_, { app, installation }) =>
    `The App ${app} has no installation ${installation.id}: it is not installed there any more, or the number belongs to another App.`,
  422: (said, { installation: { id, repository } }) =>
    `GitHub gives installation ${id} no token${said}${repository ? `; repository ${repository} is most likely not one that it may see` : ""}.`,
};

function refused(answer: GithubAnswer, given: GithubApp): ProxyError {
  const { message } = messageSchema().parse(answer.json);
  const said = message && ` (${message.slice(0, 300)})`;
  const sentence = /rate limit/i.test(message) ? undefined : entryOf(refusals, String(answer.status));
  if (sentence) return mustAct(sentence(said, given, answer));
  return new ProxyError("upstream", `GitHub states no installation of the App (status ${answer.status}${said}).`);
}

/** How wrong this machine's clock is, in words; nothing below a minute. */
function offBy({ headers }: GithubAnswer): string {
  const minutes = Math.round((Date.now() - Date.parse(headers.get("date") ?? "")) / minuteMs);
  return minutes ? `: it is ${Math.abs(minutes)} min ${minutes > 0 ? "ahead" : "behind"}` : "";
}

const installationSchema = lazy(() =>
  z.object({
    account: z.object({ login: z.string().min(1) }),
    permissions: z.record(z.string(), z.string()).catch({}),
    repository_selection: z.string().catch(""),
    suspended_at: z.string().nullish(),
  }),
);
const tokenSchema = lazy(() => z.object({ token: z.string().min(4), expires_at: z.string() }));
const messageSchema = lazy(() => z.object({ message: z.string().catch("") }).catch({ message: "" }));
