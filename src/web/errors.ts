/** Errors leave in the shape of the API that the path belongs to. */
import { Elysia, type ValidationError } from "elysia";
import type { z } from "zod";
import { codecs } from "../dialects/codecs";
import type { ClientDialect } from "../dialects/hub/conversation";
import { asProxyError, faultLine, ProxyError } from "../lib/errors";
import { invalidInput } from "../lib/input";
import { pathOfUrl } from "../lib/net/in/params";
import type { Server } from "../parts/app";
import { errorForClient } from "../proxy/relay/client-error";
import { encodeAdminError, isAdminApi } from "./admin-path";
import { visitOf } from "./context";
import { type FormQuery, invalidQuery } from "./query";

/** What an app knows of its paths. */
interface Refusing {
  /** The error for a request that no route answers. */
  refusal(method: string, path: string): ProxyError;
  /** The dialect of a path's errors; chat for one without. The admin API has a shape of its own. */
  closest?(path: string): { dialect: ClientDialect } | undefined;
}

export const errors = (server: Server, paths: Refusing) =>
  new Elysia({ name: "errors" }).onError({ as: "global" }, ({ code, error, request }) => {
    // Elysia's own errors in our words: its messages repeat what was sent.
    const ours = code === "NOT_FOUND" ? paths.refusal(request.method, pathOfUrl(request.url)) : ourError(code, error);
    return errorResponse(server, paths, ours, request);
  });

function ourError(code: unknown, error: unknown): ProxyError {
  if (code === "VALIDATION") return invalidBy(error as ValidationError);
  return asProxyError(error);
}

function invalidBy({ type, validator, value }: ValidationError): ProxyError {
  // Its type knows TypeBox only.
  const { schema = validator } = validator as unknown as { schema?: unknown };
  const { error } = (schema as z.ZodType).safeParse(value);
  if (!error) return asProxyError(new Error(`An input was refused (${type}), and its schema takes it.`));
  const refused = type === "query" ? invalidQuery(error, value as FormQuery) : invalidInput(error);
  // An answer that is not as its schema says is a fault of ours.
  return type === "response" ? asProxyError(new Error(`An answer is not as described: ${refused.message}`)) : refused;
}

/** The response for an error: status, headers, and a body in the shape of the path. */
export function errorResponse(server: Server, paths: Refusing, thrown: unknown, request: Request): Response {
  const error = asProxyError(thrown);
  if (error.kind === "internal") server.logger.error(faultLine(request.method), error.details.cause);
  // What quotes an upstream or the client is told as it is. A sentence of our own should have no secret in it.
  const spoken =
    error.message === error.written
      ? new ProxyError(error.kind, server.logger.scrub(error.message, 2048), error.details)
      : error;
  const path = pathOfUrl(request.url);
  if (isAdminApi(path))
    return Response.json(encodeAdminError(spoken), { status: error.status, headers: error.details.headers });
  const dialect = paths.closest?.(path)?.dialect ?? "chat";
  const shown = errorForClient(spoken, dialect, request.headers.get("user-agent"));
  const { status } = shown;
  const { headers, body } = shown.details;
  if (body !== undefined)
    return new Response(body, { status, headers: { ...headers, "content-type": "application/json" } });
  const requestId = visitOf(request)?.caller?.requestId ?? "";
  return Response.json(codecs[dialect].encodeError(shown, requestId), { status, headers });
}
