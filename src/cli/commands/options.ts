/** How options read their values. Each throws a UsageError that names the option. */

import { checkEnterpriseHost, type Environment } from "../../config/environment";
import { type SignInApp, signInApp, signInApps } from "../../people/accounts/hosts";
import { type Basis, flag, text } from "../command";
import { asUsage, UsageError } from "../usage-error";

/** @returns A port, 4141 without one. */
export function portFrom(given: string | undefined): number {
  if (given === undefined) return 4141;
  if (/^\d{1,5}$/.test(given) && Number(given) <= 65_535) return Number(given);
  throw new UsageError("--port must be a whole number from 0 to 65535.");
}

/** An option with a number within limits. */
export const numberFrom =
  (option: string, [least, most]: readonly [number, number], noun = "a whole number") =>
  (given: string): number => {
    const number = /^\d+(?:\.\d+)?$/.test(given) ? Number(given) : Number.NaN;
    const fits = noun.includes("whole") ? Number.isSafeInteger(number) : true;
    if (fits && number >= least && number <= most) return number;
    throw new UsageError(`${option} must be ${noun} from ${least} to ${most}.`);
  };

/** What stands between commas; without spaces. */
export const listFrom = (given: string | undefined): string[] | undefined =>
  given?.split(",").map((part) => part.trim());

export const yes = flag("Do not ask", "y");

/** @param path Whose answer is printed; without one, an object of the command's own. */
export const json = (path?: string) =>
  flag(path === undefined ? "Print one JSON object" : `Print JSON, as GET ${path} returns it`);

/** The values of an option or argument that names a tool. */
export const tools = async () => (await import("../../clients/index")).clientIds;

export const signInOptions = {
  oauthApp: text("<app>", "App to sign in with: vscode (default), opencode, or a client ID", {
    values: () => Object.keys(signInApps),
  }),
  enterpriseUrl: text("<host>", "Your enterprise's own GitHub host, such as company.ghe.com"),
};

/** Where to sign in and with which app, as the options or else the environment say. */
export function signInWith(given: Basis & { oauthApp: string | undefined; enterpriseUrl: string | undefined }): {
  app: SignInApp;
  enterpriseHost?: string;
} {
  const enterpriseHost = enterpriseFrom(given.environment, given.enterpriseUrl);
  return {
    app: asUsage(() => signInApp(given.oauthApp ?? given.environment.oauthApp, enterpriseHost)),
    enterpriseHost,
  };
}

const enterpriseFrom = (from: Environment, given: string | undefined): string | undefined =>
  given === undefined ? from.enterpriseHost : asUsage(() => checkEnterpriseHost("--enterprise-url", given));
