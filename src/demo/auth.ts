/** Checks the headers of a request to the model host, before the body is read. */
import type { DemoAccount, HostName } from "./accounts";
import type { DemoState } from "./state";
import { plain } from "./wire";

/** The account of a request. @throws Refusal for missing or wrong headers. */
export function admit(demo: DemoState, host: HostName, headers: Record<string, string>): DemoAccount {
  const bearer = /^bearer (.+)$/i.exec(headers.authorization ?? "")?.[1] ?? "";
  const direct = bearer.startsWith("gho_");
  const account = direct ? byGithubToken(demo, bearer) : byCopilotToken(demo, bearer);

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
}

function byGithubToken(demo: DemoState, token: string): DemoAccount {
  const account = demo.accounts.find(({ githubToken }) => githubToken === token);
  if (!account) throw plain(401, "unauthorized: invalid token");
  return account;
}

function byCopilotToken(demo: DemoState, token: string): DemoAccount {
  const issued = demo.issued.get(token);
  if (!issued) throw plain(401, token ? "unauthorized: invalid token" : "unauthorized");
  if (demo.now() >= issued.until || !demo.accounts.includes(issued.account))
    throw plain(401, "unauthorized: token expired");
  return issued.account;
}
