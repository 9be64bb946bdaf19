/** The doors: whose request it is, by its token and headers. Each throws the Refusal of a request that it does not let in. */
import type { DemoAccount } from "./accounts";
import type { Arrival, DemoState } from "./state";
import { githubError, plain } from "./wire";

export type Door = (arrival: Pick<Arrival, "demo" | "seen">) => DemoAccount;

/** The model host: for a Copilot token, or the GitHub token itself of an OAuth app or an installation. */
export const admit: Door = ({ demo, seen: { host, headers } }) => {
  const bearer = /^bearer (.+)$/i.exec(headers.authorization ?? "")?.[1] ?? "";
  const direct = /^gh[os]_/.test(bearer);
  const account = direct ? demo.accounts.find(({ githubToken }) => githubToken === bearer) : issuedTo(demo, bearer);
  if (!account) throw plain(401, bearer ? "unauthorized: invalid token" : "unauthorized");
  if (account.host !== host) throw plain(421, "Misdirected Request");
  const version = headers["x-github-api-version"];
  if (version !== undefined && version < "2025-04-01")
    throw plain(
      466,
      "bad request: the specified API version is no longer supported. You may need to update your client to a newer version.",
    );
  if (!direct && !headers["editor-version"])
    throw plain(400, "bad request: missing Editor-Version header for IDE auth");
  if (!direct && !headers["copilot-integration-id"])
    throw plain(403, "unauthorized: not authorized to use this Copilot feature");
  return account;
};

function issuedTo(demo: DemoState, token: string): DemoAccount | undefined {
  const issued = demo.issued.get(token);
  if (issued && (demo.now() >= issued.until || !demo.accounts.includes(issued.account)))
    throw plain(401, "unauthorized: token expired");
  return issued?.account;
}

/** GitHub, for the token of a sign-in. */
export const signedIn: Door = ({ demo, seen: { headers } }) => byToken(demo, headers.authorization, ["githubToken"]);
/** GitHub, also for a fine-grained token of the person. */
export const person: Door = ({ demo, seen: { headers } }) =>
  byToken(demo, headers.authorization, ["githubToken", "planToken"]);

function byToken(
  { accounts }: DemoState,
  authorization: string | undefined,
  kinds: readonly ("githubToken" | "planToken")[],
): DemoAccount {
  const token = tokenIn(authorization);
  const account = accounts.find((each) => token !== undefined && kinds.some((kind) => each[kind] === token));
  if (!account) throw githubError(401, "Bad credentials");
  return account;
}

/** `token X` and `Bearer X` are the same to GitHub. */
export const tokenIn = (authorization = "") => /^(?:token|bearer) (.+)$/i.exec(authorization)?.[1];
