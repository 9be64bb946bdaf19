/** @jsxRuntime automatic @jsxImportSource #jsx */
/**
 * A member's sign-in to the pages with GitHub, by an app of the owner's: the browser proves to have one of the member's accounts.
 * It is worth as much as the member's key that may do most, and ends with it.
 */
import { Elysia } from "elysia";
import { asProxyError, ProxyError } from "../../../lib/errors";
import { networkOf } from "../../../lib/net/address";
import { browserUrl } from "../../../lib/net/in/browser-url";
import type { Server } from "../../../parts/app";
import { accountKeyOf } from "../../../people/accounts/account-store";
import { fetchLogin, type GithubCaller } from "../../../people/accounts/github";
import { hostsFor } from "../../../people/accounts/hosts";
import { authorizeAddress, loginByCode, newVerifier, stateOf, webAppOf } from "../../../people/accounts/web-flow";
import { type ClientKey, isExpired } from "../../../people/keys/client-keys";
import { githubCookie, setCookie, valueIn } from "../../access/sign-in-cookie";
import { Sentence, Value } from "../../ui/format";
import { BarePage } from "../../ui/layout";
import { html, redirect } from "../../ui/page-context";
import { type Asked, access } from "../access";
import { pathHere } from "../visitors";

const callback = "/admin/github/done";
/** Seconds that the person may take at GitHub. */
const longest = 600;
/** Characters of a verifier (RFC 7636, section 4.1). */
const leastVerifier = 43;

type Asker = Pick<Asked, "dragoman" | "visitors" | "caller"> & { request: Request };

/** The owner's app, and GitHub as it is asked. @throws ProxyError `not_found` where there is no such app */
function githubOf({ environment, version, members }: Server) {
  const app = webAppOf(environment);
  if (!app || !members?.needKeys) throw new ProxyError("not_found", "Nobody signs in with GitHub here.");
  const hosts = hostsFor(environment.enterpriseHost, environment);
  return { app, caller: { hosts, version } satisfies GithubCaller };
}

function begin({ dragoman, request, caller }: Asker): Response {
  const { app, caller: github } = githubOf(dragoman);
  const url = browserUrl(request);
  // Whoever is led here by another site asks for a page first.
  if (caller.foreign) return redirect("/admin");
  const verifier = newVerifier();
  const kept = `${verifier}.${Buffer.from(url.searchParams.get("next") ?? "").toString("base64url")}`;
  return redirect(authorizeAddress(github.hosts.web, app, verifier, url.origin + callback), {
    "set-cookie": setCookie(request, githubCookie, kept, longest),
  });
}

async function finish({ dragoman, visitors, request, caller }: Asker): Promise<Response> {
  const { app, caller: github } = githubOf(dragoman);
  const url = browserUrl(request);
  const [verifier = "", next = ""] = valueIn(request, githubCookie)?.split(".") ?? [];
  const code = url.searchParams.get("code");
  // Somebody else's code would sign this browser in as that person; the state of no verifier anybody can compute.
  if (verifier.length < leastVerifier || url.searchParams.get("state") !== stateOf(verifier))
    throw refused("This sign-in was not begun in this browser, or more than ten minutes ago.");
  if (code === null) throw refused("GitHub was not allowed to say whose account it is.");
  const { githubCodes: tries } = dragoman.wrongSecrets;
  const network = caller.local ? undefined : networkOf(caller.peer ?? "unknown");
  if (network !== undefined) tries.refuse(network);
  let login: string;
  try {
    login = await loginByCode(github, app, { code, verifier, callback: url.origin + callback });
  } catch (thrown) {
    if (network !== undefined) tries.count(network);
    throw thrown;
  }
  const member = await memberWith(dragoman, github, login);
  if (member === undefined)
    throw refused(`No member has signed in the account ${login}. Sign in with a key, or ask the owner for a link.`);
  const key = await widestKey(dragoman, member);
  if (!key) throw refused("You have no key that is good. Ask the owner of this dragoman for a new invitation link.");
  dragoman.logger.info(`${dragoman.members!.find(member)?.name} signed in to the pages with GitHub.`);
  // GitHub has led here: with a click of their own the browser sends its cookie.
  return html(
    <BarePage frame={visitors.frameFor()} title="Signed in">
      <p>
        You are <Value of={login} max={100} /> at GitHub.
      </p>
      <p>
        <a href={pathHere(Buffer.from(next, "base64url").toString())} class="button primary">
          Continue
        </a>
      </p>
    </BarePage>,
    200,
    await visitors.signInAs(request, member, key.digest),
  );
}

const refused = (sentence: string) => new ProxyError("permission", sentence, { code: "sign_in_refused" });

/** Whose account it is now: a login may have been given up, and taken by somebody else. */
async function memberWith(app: Server, github: GithubCaller, login: string): Promise<string | undefined> {
  await app.accountStore.reload?.();
  const key = `${github.hosts.name}/${login}`.toLowerCase();
  const saved = app.accountStore.load().find((each) => accountKeyOf(each) === key);
  if (saved?.member === undefined || !("githubToken" in saved)) return undefined;
  const present = await fetchLogin(github, saved.githubToken, saved.mode);
  return present.toLowerCase() === login.toLowerCase() ? saved.member : undefined;
}

async function widestKey({ members, now }: Server, member: string): Promise<ClientKey | undefined> {
  await members!.hearAll();
  const end = ({ expiresAt }: ClientKey) => expiresAt ?? Number.POSITIVE_INFINITY;
  const good = members!.clientKeysOf(member).filter((key) => !isExpired(key, now()));
  return good.sort(
    (one, other) => Number(one.models !== null) - Number(other.models !== null) || (end(other) > end(one) ? 1 : -1),
  )[0];
}

/** Shows why it failed as a page. */
async function shown({ dragoman, visitors }: Asker, work: () => Response | Promise<Response>): Promise<Response> {
  try {
    return await work();
  } catch (thrown) {
    const error = asProxyError(thrown);
    if (error.kind === "internal") dragoman.logger.error("A sign-in with GitHub failed.", error.details.cause);
    const page = (
      <BarePage frame={visitors.frameFor()} title="You are not signed in">
        <p class="fault" role="alert">
          <Sentence of={error.message} />
        </p>
        <p>
          <a href="/admin">Sign in</a>
        </p>
      </BarePage>
    );
    return html(page, error.status, error.details.headers);
  }
}

export const github = new Elysia({ name: "github" })
  .use(access)
  .get("/github", (asked) => shown(asked, () => begin(asked)), { page: "everybody" })
  .get("/github/done", (asked) => shown(asked, () => finish(asked)), { page: "everybody" });
