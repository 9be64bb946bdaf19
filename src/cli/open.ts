/** `dragoman open`: the admin pages of the running server. */
import type { Environment } from "../config/environment";
import { openBrowser } from "./desktop";
import { requireServer } from "./running-server";
import { print, say } from "./terminal";

/** Prints the address too: there may be no browser. */
export function openPages({ environment }: { environment: Environment }): number {
  const address = `${requireServer(environment).url}/admin`;
  if (!openBrowser(address)) say("There is no browser here. Open this address:");
  print(address);
  return 0;
}
