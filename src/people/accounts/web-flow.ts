/**
 * GitHub's web flow (OAuth 2.0 with PKCE) with an app of the owner's: by it a browser proves whose account it has. The device flow
 * does not, because whoever began one can have somebody else finish it (RFC 8628, section 5.4).
 * https://docs.github.com/apps/oauth-apps/building-oauth-apps/authorizing-oauth-apps, read on 29 November 2026.
 */
import { z } from "zod";
import { ProxyError } from "../../lib/errors";
import { lazy } from "../../lib/lazy";
import { sha256 } from "../../lib/net/in/credentials";
import { fetchLogin, type GithubCaller, postToGithub } from "./github";
import { signInApps } from "./hosts";

export interface WebApp {
  clientId: string;
  secret: string;
}

/** The owner's app; undefined where none is set. Others have no secret that we could know. */
export function webAppOf({
  oauthApp,
  oauthSecret,
}: {
  oauthApp?: string | undefined;
  oauthSecret?: string | undefined;
}): WebApp | undefined {
  if (!oauthApp || !oauthSecret || Object.hasOwn(signInApps, oauthApp)) return undefined;
  return { clientId: oauthApp, secret: oauthSecret };
}

export const newVerifier = (): string => crypto.getRandomValues(Buffer.alloc(32)).toString("base64url");

/** What GitHub hands back beside its code: only the browser that has the verifier could have begun the flow. */
export const stateOf = (verifier: string): string => sha256(`state ${verifier}`).toString("base64url");

/** Where GitHub asks the person. It is asked for no right: whose account it is, each token may know. */
export function authorizeAddress(web: string, { clientId }: WebApp, verifier: string, callback: string): string {
  const asked = new URLSearchParams({
    client_id: clientId,
    redirect_uri: callback,
    state: stateOf(verifier),
    code_challenge: sha256(verifier).toString("base64url"),
    code_challenge_method: "S256",
    allow_signup: "false",
  });
  return `${web}/login/oauth/authorize?${asked}`;
}

/**
 * Whose account it is. The token is not kept.
 * @throws ProxyError `authentication` if GitHub does not take the code; `upstream`, `timeout`
 */
export async function loginByCode(
  caller: GithubCaller,
  { clientId, secret }: WebApp,
  { code, verifier, callback }: { code: string; verifier: string; callback: string },
): Promise<string> {
  const { status, json } = await postToGithub(caller, "/login/oauth/access_token", {
    client_id: clientId,
    client_secret: secret,
    code,
    redirect_uri: callback,
    code_verifier: verifier,
  });
  const { access_token, error } = answerSchema().parse(json);
  if (access_token !== undefined) return fetchLogin(caller, access_token, "direct");
  if (error === undefined)
    throw new ProxyError("upstream", `GitHub's answer has no token (status ${status}); try again later.`);
  throw new ProxyError("authentication", `GitHub did not accept the sign-in (${error}). Begin it again.`, {
    code: "sign_in_refused",
  });
}

const answerSchema = lazy(() =>
  z
    .object({
      access_token: z
        .string()
        .regex(/^[\x21-\x7e]{1,1024}$/)
        .optional()
        .catch(undefined),
      error: z
        .string()
        .regex(/^\w{1,100}$/)
        .optional()
        .catch(undefined),
    })
    .catch({}),
);
