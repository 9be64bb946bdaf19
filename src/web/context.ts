/** The members that every handler finds in its context besides Elysia's own. */
import { Elysia } from "elysia";
import type { ClientConnection, Visitor } from "../lib/net/in/caller";
import type { Scope, Server } from "../parts/app";
import type { KeyedCaller } from "../people/keys/client-keys";

// Elysia wants an index signature, which an interface lacks.
type Asked = {
  /** The running server, whoever asks. Elysia's own `server` is a listener. Set by `guard.ts` before routing. */
  dragoman: Server;
  /** Set by `guard.ts` before routing. */
  caller: KeyedCaller;
  /** The part of the server that the caller may use. Set by `access.ts`. */
  scope: Scope;
};

/**
 * Each app's: a path is served as it is written, without a slash at its end, and Host is not made a part of it.
 */
export const appOptions = { strictPath: true, handler: { standardHostname: false } } as const;

/** Of a macro's routes: bodies go on as they are, and who reads one does so within its limit. The types of macros lack this option. */
export const unread = { parse: "none" } as object;

export const context = new Elysia({ name: "context" }).decorate({} as Asked);

/** A request before it is routed. */
export interface Visit {
  /** Elysia knows one listener, and there are two (127.0.0.1 and ::1); a message of a WebSocket has none. */
  readonly connection: ClientConnection;
  /** As it came: at the address of a project, it is another one than the request that is routed. */
  readonly sent: Request;
  /** Known once the request was inspected. */
  caller?: Visitor;
}

const visited = Symbol("visit");
type Visited = Request & { [visited]?: Visit };

/** A member of the request: for a `WeakMap` the collector takes a microsecond more for each. */
export function beginVisit(request: Visited, visit: Visit): void {
  request[visited] = visit;
}

export const visitOf = (request: Visited): Visit | undefined => request[visited];
