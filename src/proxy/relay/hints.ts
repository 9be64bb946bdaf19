/** What clients say of a request in its headers: which prompt it belongs to, what it is for, and in which project. Never content. */

import type { RequestKind } from "../../books/history/entry";
import { ProxyError } from "../../lib/errors";

export interface Hints {
  /** The client's own id for what a person asked. The requests of subagents carry it too. */
  prompt?: string;
  kind?: RequestKind;
  /** The client's name for a kind of subagent. */
  agentType?: string;
  project?: string;
}

/**
 * Headers of Claude Code 2.1.332, which sends them with CLAUDE_CODE_GATEWAY_HINT_HEADERS=1: seen from the client itself,
 * 2026-11. Requests beside the conversation, and a compaction that a person asks for, have a class and no prompt.
 */
const [promptHeader, classHeader, agentTypeHeader] = [
  "x-claude-code-prompt-id",
  "x-claude-code-request-class",
  "x-claude-code-agent-type",
];
const kindsOfClasses = new Map<string, RequestKind>([
  ["main", "main"],
  ["subagent", "subagent"],
  ["workflow", "subagent"],
  ["compaction", "compaction"],
  ["auxiliary", "auxiliary"],
  ["side_reply", "auxiliary"],
]);

/** Headers of subagents' requests: Claude Code 2.1.330, Codex 0.169 and opencode 1.18.33. */
const subagentHeaders = ["x-claude-code-agent-id", "x-codex-parent-thread-id", "x-parent-session-id"];

/** The header of dragoman's own that names a project. */
export const projectHeader = "x-dragoman-project";
/** What a project may be called: it is shown, and stands in addresses. */
export const projectName = /^[A-Za-z0-9][\w .@+-]{0,63}$/;
/** A provider may be called `p` too. */
const projectPath = /^(https?:\/\/[^/]+)\/p\/(?!v1\/)([^/?#]+)(\/.*)$/;

/** A request to `/p/<project>/…` as one to `/…` with the header, for clients that can send no headers. */
export function ofProject(request: Request): Request {
  if (!request.url.includes("/p/")) return request;
  const [, origin, written = "", rest = ""] = projectPath.exec(request.url) ?? [];
  const project = written.replaceAll("%20", " ");
  if (origin === undefined || !projectName.test(project)) return request;
  const headers = new Headers(request.headers);
  headers.set(projectHeader, project);
  const { method, body, signal } = request;
  return new Request(origin + rest, { method, headers, body, signal });
}

/** @throws ProxyError `invalid_request` if the project has no name that can be shown. */
export function hintsIn(headers: Headers): Hints {
  const project = headers.get(projectHeader) ?? undefined;
  if (project !== undefined && !projectName.test(project))
    throw new ProxyError(
      "invalid_request",
      `\`${projectHeader}\` must be at most 64 letters, digits, spaces and ._@+-, and begin with a letter or digit.`,
    );
  const agentType = headers.get(agentTypeHeader) ?? "";
  return {
    prompt: idOf(headers.get(promptHeader)),
    kind: kindIn(headers),
    agentType: /^[A-Za-z][\w-]{0,47}$/.test(agentType) ? agentType : undefined,
    project,
  };
}

function kindIn(headers: Headers): RequestKind | undefined {
  const kind = kindsOfClasses.get(headers.get(classHeader) ?? "");
  if (kind) return kind;
  for (const name of subagentHeaders) if (headers.has(name)) return "subagent";
}

/** An id in a header or a body; not validated but for its length. */
export const idOf = (value: unknown): string | undefined =>
  typeof value === "string" && value !== "" ? value.slice(0, 256) : undefined;
