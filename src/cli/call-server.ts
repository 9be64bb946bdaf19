/** Calls a dragoman server. It loads nothing that reads answers: a status line waits for it after each message. */
import { asProxyError, ProxyError } from "../lib/errors";
import type { CallResponse } from "../lib/net/out/body";
import { singleLimit } from "../lib/net/out/clock";
import { callOut } from "../lib/net/out/fetch";
import type { Settings } from "./server-routes";

export interface ServerRequest extends Settings {
  /** With its query. */
  path: string;
  method?: "GET" | "POST";
  body?: object;
}

interface CalledServer {
  url: string;
  adminToken?: string;
}

export const whoIs = ({ url }: CalledServer): string => `The server at ${url}`;

export const isAdmin = (path: string): boolean => path.startsWith("/api/admin");

/**
 * The one way in which commands call a server of this machine. The admin API gets the admin token, if one is set here.
 * @throws ProxyError without an answer
 */
export async function callServer(
  { url, adminToken }: CalledServer,
  { path, method = "GET", body, headers = {}, timeoutMs = 30_000 }: ServerRequest,
  key?: string,
): Promise<CallResponse> {
  const who = whoIs({ url });
  return callOut(url + path, {
    method,
    headers: {
      "user-agent": "dragoman",
      ...(key !== undefined && { "x-api-key": key }),
      ...(body && { "content-type": "application/json" }),
      ...(isAdmin(path) && adminToken !== undefined && { "x-admin-token": adminToken }),
      ...headers,
    },
    body: body && JSON.stringify(body),
    limits: singleLimit(timeoutMs),
    who,
  }).catch((thrown) => {
    const error = asProxyError(thrown);
    if (error.details.code !== "upstream_unreachable") throw error;
    throw new ProxyError(
      "upstream",
      `${who} does not answer. It may be stopping; \`dragoman start\` starts a new one.`,
      error.details,
    );
  });
}
