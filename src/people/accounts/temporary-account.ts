/** A GitHub App as it is entered, and the account that the environment names for one run. */
import type { Environment } from "../../config/environment";
import { ProxyError } from "../../lib/errors";
import { appInstallation, type TemporaryAccount } from "./account-store";
import type { GithubApp } from "./installation";

/** @throws ProxyError `invalid_request` that names what is wrong, never its value */
export function githubApp(given: {
  app: string;
  installation: string;
  repository?: string | undefined;
  privateKey: string;
}): GithubApp {
  const { app, installation: id, repository, privateKey } = given;
  if (!/^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/.test(app))
    throw new ProxyError("invalid_request", "The App ID is the number, or the client id, that GitHub's page shows.", {
      param: "app",
    });
  const read = appInstallation().safeParse({ id, repository, privateKey: plainKey(privateKey) });
  if (read.success) return { app, installation: read.data };
  const wrong = { id: "installation", repository: "repository", privateKey: "private_key" };
  const param = wrong[read.error.issues[0]!.path[0] as keyof typeof wrong];
  throw new ProxyError("invalid_request", `The ${param.replace("_", " ")} of the App is not valid.`, { param });
}

/**
 * @param token In place of that of the environment.
 * @throws ProxyError `invalid_request` if a part of an App is missing or not valid
 */
export function temporaryAccount(
  { githubToken, appId, appInstallation: installation, appRepository: repository, appKey }: Environment,
  token = githubToken,
): TemporaryAccount | undefined {
  if (token !== undefined) return { temporary: true, githubToken: token };
  if (!appId && !installation && !appKey) return undefined;
  if (!appId || !installation || !appKey)
    throw new ProxyError(
      "invalid_request",
      "A GitHub App needs all of DRAGOMAN_APP_ID, DRAGOMAN_APP_INSTALLATION and DRAGOMAN_APP_KEY.",
    );
  return { temporary: true, ...githubApp({ app: appId, installation, repository, privateKey: appKey }) };
}

/** In one line, as a variable often has it, line ends are the characters \n. */
const plainKey = (text: string): string => `${text.trim().replace(/\\n|\r\n/g, "\n")}\n`;
