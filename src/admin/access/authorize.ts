/**
 * Authorizes callers of the admin API and pages: this machine, and anyone with the admin token, as the owner; a member of a team
 * with one of the member's keys. The owner's client keys do not count.
 */

import { ProxyError } from "../../lib/errors";
import { isLoopbackAddress, networkOf } from "../../lib/net/address";
import { type Caller, namesThisMachine } from "../../lib/net/in/caller";
import { includesSecret, keyHeaders, sentSecrets } from "../../lib/net/in/credentials";
import type { Scope, Server } from "../../parts/app";
import { isAccessToken } from "../../people/keys/access-tokens";
import { type ClientKey, isExpired, isMadeKey, requireUnexpired } from "../../people/keys/client-keys";
import { hearMembers } from "../../web/client-access";

/** Who may use a page or an endpoint. `member`: members too, who see only what is their own. `owner`: nobody else. */
export type Role = "member" | "owner";

/** What authorizes an answer that goes on. */
export interface Permit {
  /** Asked again and again. */
  readonly holds: boolean;
}

/**
 * Finds out who the caller is: a member's id, or null for the owner. Throws ProxyError `permission`, `authentication`, `rate_limit`
 * for everybody else. For the owner, all members are known then.
 */
export type Authorizer = (request: Pick<Request, "headers">, caller: Caller) => Promise<string | null>;

export function authorizerOf(app: Server): Authorizer {
  const { adminTokens: tries } = app.wrongSecrets;
  const whoIs: (...asked: Parameters<Authorizer>) => string | null = (request, caller) => {
    const { adminToken } = app.environment;
    const sent = sentSecrets(request.headers, ["x-admin-token"]);
    const key = memberKeyOf(app, request, caller);
    const others = sent.filter((text) => !app.members?.findKey([text]));
    // Such a key or token cannot be guessed, so who sends nothing else is not locked out by others behind the same address.
    if (key && others.length === 0) return key.member;
    // Callers on this machine are never locked out, nor is an old key a guess. A caller through a local proxy counts as remote.
    const isGuess = sent.length === 0 || !sent.every(isUnguessable);
    const network = caller.local || !isGuess ? undefined : networkOf(caller.peer ?? "unknown");
    if (network !== undefined) tries.refuse(network);

    if (adminToken !== undefined && includesSecret(sent, [adminToken])) return null;
    if (key) {
      if (network !== undefined) tries.count(network);
      return key.member;
    }
    if (caller.local && app.adminAuth === "remote") return null;
    if (caller.foreign) throw new ProxyError("permission", "Web pages of other origins cannot use the admin API.");
    if (adminToken === undefined && !app.members?.needKeys)
      throw new ProxyError(
        "permission",
        `${whyRemote(caller)} To allow access from other machines, set ADMIN_TOKEN where dragoman runs.`,
      );
    if (network !== undefined && sent.length > 0) tries.count(network);
    throw new ProxyError("authentication", sent.length === 0 ? noToken(app) : wrongToken(app), {
      headers: { "www-authenticate": "Bearer" },
    });
  };
  return async (request, caller) => {
    await hearMembers(app, sentByMember(request.headers), caller);
    const who = whoIs(request, caller);
    if (who === null) await app.members?.hearAll();
    return who;
  };
}

/** Keys and tokens that were made here. */
const isUnguessable = (text: string) => isMadeKey(text) || isAccessToken(text);

const noToken = ({ members }: Server) =>
  `An admin token${members?.needKeys ? " or a member's key" : ""} is required. Send it as \`x-admin-token: <token>\` or \`Authorization: Bearer <token>\`.`;

/** The owner's client keys open nothing here, and a revoked key is not known any more. */
function wrongToken({ members, environment: { adminToken } }: Server): string {
  if (!members?.needKeys) return "The admin token is wrong.";
  const notMembers =
    "no member has this key; if it was revoked, ask the owner of this dragoman for a new invitation link.";
  if (adminToken !== undefined) return `This is not the admin token, and ${notMembers}`;
  return `ADMIN_TOKEN is not set where dragoman runs, so the owner cannot use this from another machine; and ${notMembers}`;
}

/** Authorizes an answer that goes on, by the member's key that the request sent: it ends when the key is no longer good. */
export function keyPermit(app: Scope, { headers }: Request): Permit {
  const sent = sentByMember(headers);
  return {
    get holds() {
      // What is known now is at most as old as the last time that this was asked.
      void Promise.try(() => app.membership?.hear(sent)).catch(() => {});
      const key = app.membership?.findKey(sent);
      return key !== undefined && !app.isolation && !isExpired(key, app.now());
    },
  };
}

/** The member's key that a request sent. */
export const keySentTo = ({ membership }: Scope, { headers }: Pick<Request, "headers">): ClientKey | undefined =>
  membership?.findKey(sentByMember(headers));

const sentByMember = (headers: Headers) => sentSecrets(headers, ["x-admin-token", ...keyHeaders]);

/** A key is worth no more on this machine than elsewhere. Pages of other origins have none. @throws ProxyError `authentication`, `unable` */
function memberKeyOf(app: Server, request: Pick<Request, "headers">, caller: Caller): ClientKey | undefined {
  if (!app.members || caller.foreign) return undefined;
  const key = app.members.findKey(sentByMember(request.headers));
  if (!key) return undefined;
  if (app.isolation) throw app.isolation;
  requireUnexpired(key, app.now());
  return key;
}

/** Why the caller counts as remote: the first sentence of the error message. */
function whyRemote({ peer, host, hostName, forwardedBy }: Caller): string {
  const rule = "The admin API is available on this machine only";
  if (!isLoopbackAddress(peer)) return `${rule}, and this request came from another machine.`;
  if (forwardedBy !== undefined) return `${rule}, and this request came through a proxy (header ${forwardedBy}).`;
  if (!namesThisMachine(host)) return `${rule}, as localhost or 127.0.0.1, and this request was sent to ${hostName}.`;
  return `${rule}.`;
}
