/** Exchanges a GitHub token for a Copilot token, and classifies every failure. */

import { z } from "zod";
import { asProxyError } from "../../lib/errors";
import { dayMs, hourMs } from "../../lib/format";
import { lazy } from "../../lib/lazy";
import { readRetryAfter } from "../../lib/net/out/retry-after";
import {
  copilotVersion,
  endpointsSchema,
  type GithubAnswer,
  type GithubCaller,
  getFromGithub,
  revoked,
} from "./github";
import type { GithubTokenKind } from "./github-tokens";
import { allowedModelHost, type Hosts } from "./hosts";
import { isSuspensionAnswer, suspensionReason } from "./suspension";

export interface IssuedToken {
  token: string;
  /** Milliseconds from now: certainly accepted for `refreshIn`, expired after `lifetime`. */
  refreshIn: number;
  lifetime: number;
  /** As stated, ms timestamp by GitHub's clock; for display. */
  expiresAt?: number;
  /** The time of GitHub's clock, ms timestamp; NaN when it is not stated. */
  statedAt: number;
  /** The model host this token is bound to. */
  endpoint?: string;
  /** Something unexpected that was corrected, for the log. */
  warning?: string;
}

/**
 * - `direct`: GitHub does not exchange this token; the model host accepts it as it is.
 * - `failed`: a person must act; `abuse` if GitHub reports abuse or suspension.
 * - `retry`: later; `after` in milliseconds where GitHub says when.
 */
type TokenExchange =
  | { outcome: "token"; copilot: IssuedToken }
  | { outcome: "direct" }
  | { outcome: "failed"; reason: string; abuse?: boolean }
  | { outcome: "retry"; reason: string; after?: number; cause?: unknown };

/** Never throws: every failure is an outcome of {@link TokenExchange}. @param kind Of the token, whose refusals mean different things. */
export async function exchangeToken(
  caller: GithubCaller,
  githubToken: string,
  kind: GithubTokenKind = "person",
): Promise<TokenExchange> {
  let answer: GithubAnswer;
  try {
    answer = await getFromGithub(caller, "/copilot_internal/v2/token", githubToken, "exchange", copilotVersion);
  } catch (thrown) {
    return { outcome: "retry", reason: asProxyError(thrown).message, cause: thrown };
  }
  if (answer.status === 200) {
    const exchange = readCopilotToken(answer, caller.hosts);
    // What refuses the account is no answer with a token: that it lacks the rest says nothing of this version.
    if (exchange.outcome !== "failed") caller.answered?.("token", answer.json);
    return exchange;
  }
  const refusal = refusalSchema().parse(answer.json);
  const row = refusalRows.find(
    ({ status, when, of }) =>
      status.test(String(answer.status)) && (!of || of === kind) && (!when || when(refusal, answer.status)),
  )!;
  const reason = row.sentence(refusal, answer.status);
  if (row.outcome === "retry") return { outcome: "retry", reason, after: waitIn(answer.headers) };
  return row.outcome === "direct" ? { outcome: "direct" } : { outcome: "failed", reason, abuse: row.abuse };
}

const clamp = (value: number, min: number, max: number) => Math.min(Math.max(value, min), max);

function readCopilotToken(answer: GithubAnswer, hosts: Hosts): TokenExchange {
  const read = tokenSchema().safeParse(answer.json);
  // Seen for an installation without a plan (bifrost, 2026-10).
  if (read.success && read.data.token === "")
    return {
      outcome: "failed",
      reason:
        "GitHub issues no Copilot token (it sent an empty one): there is no active Copilot plan that would pay for these requests.",
    };
  if (!read.success)
    return {
      outcome: "retry",
      reason: "GitHub's answer has no Copilot token: is a proxy or a captive portal in the way?",
    };
  const { token, expires_at, refresh_in, endpoints } = read.data;
  if (token.length > 16_384 || !/^[\x20-\x7e]+$/.test(token))
    return { outcome: "failed", reason: "GitHub issued a Copilot token that is not a valid header value." };

  // Durations are computed with GitHub's clock: this machine's may be wrong by a day.
  const expires = expires_at ?? Number(/(?:^|;)exp=(\d+)/.exec(token)?.[1]);
  const statedAt = Date.parse(answer.headers.get("date") ?? "");
  const left = expires * 1000 - statedAt;
  const plausible = left >= 30_000 && left <= dayMs;
  const defaultMs = plausible ? left - 300_000 : 1_500_000;
  const refreshIn = clamp(refresh_in === undefined ? defaultMs : refresh_in * 1000, 30_000, plausible ? left : dayMs);
  const endpoint = endpoints && allowedModelHost(endpoints.api, hosts);
  const hostRefused = endpoints && !endpoint;
  return {
    outcome: "token",
    copilot: {
      token,
      refreshIn,
      lifetime: plausible ? left : refreshIn + 60_000,
      expiresAt: Number.isFinite(expires) ? expires * 1000 : undefined,
      statedAt,
      endpoint,
      warning: hostRefused
        ? `GitHub named ${endpoints.api.slice(0, 200)} as the model host; tokens are not sent there, so ${hosts.copilot} is used.`
        : undefined,
    },
  };
}

interface RefusalRow {
  status: RegExp;
  /** Without it, of every kind. */
  of?: GithubTokenKind;
  when?: (refusal: Refusal, status: number) => boolean;
  outcome: "direct" | "failed" | "retry";
  abuse?: boolean;
  sentence(refusal: Refusal, status: number): string;
}

/** Of the token exchange and of the model host (fine-grained tokens, seen in 2026-06). */
export const personalTokenWords = /Personal Access Tokens are not supported/i;
export const personalTokenReason =
  "GitHub takes no personal access token here: sign in again, on the page Accounts or with `dragoman auth`.";

/** GitHub's words of 2026-11 ("Server-to-server authentication" of its SDK): installation access tokens are not enabled. */
const notEnabledWords = /installation[^.]{0,200}\bnot enabled|not enabled[^.]{0,200}\binstallation/i;

/** Of the model host: for a token without the permission (copilot-cli#3396, azure-sdk-for-js#38947, 2026-06), and as above. */
export const serverTokenWords = new RegExp(`Server-To-Server Tokens are not supported|${notEnabledWords.source}`, "i");
export const serverTokenReason =
  "It was shown the token of an installation. Give the App the organization permission “Copilot Requests”, or the job `permissions: copilot-requests: write`; an owner of the organization has to allow such requests in its Copilot policies.";

/** What a person has to change at GitHub. */
const notForInstallations = {
  app: {
    notEnabled:
      "The organization does not let installations of a GitHub App use Copilot: one of its owners has to allow Copilot requests from GitHub App installations, in its Copilot policies.",
    notPermitted:
      "Copilot refuses the installation of the App: it lacks the permission “Copilot Requests”, an owner of the organization has not accepted it, or, with the repository permission of that name, it does not have all repositories or names none of them.",
  },
  job: {
    notEnabled:
      "GitHub does not take this token for Copilot: its job has ended, or the organization's policy “Allow use of Copilot CLI billed to the organization” is off.",
    notPermitted:
      "Copilot refuses this token: the job needs `permissions: copilot-requests: write`, and its repository an organization or owner with a Copilot plan.",
  },
};

/** The first matching row counts; the last one matches everything. */
const refusalRows: RefusalRow[] = [
  {
    status: /403/,
    when: ({ message }) => /^API rate limit exceeded|secondary rate limit|abuse detection mechanism/i.test(message),
    outcome: "retry",
    sentence: () => "GitHub limits how often this account may ask for tokens; it is asked again later.",
  },
  {
    status: /403/,
    when: ({ error_details }) => error_details.notification_id === "server_error",
    outcome: "retry",
    sentence: () => "GitHub could not check whether this account may use Copilot; it is asked again later.",
  },
  {
    status: /.*/,
    when: ({ message, error_details: { notification_id, title, message: detail } }, status) =>
      isSuspensionAnswer(status, [message, notification_id, title, detail].join(" ")),
    outcome: "failed",
    abuse: true,
    sentence: (refusal) => suspensionReason(messageOf(refusal)),
  },
  // GitHub's own runtime does not exchange the token of an installation: it shows it to the models' host (Copilot CLI 1.0.102, run
  // on loopback in 2026-11). Another client does exchange it (bifrost, 2026-10). So where GitHub declines, the host is asked.
  ...(["app", "job"] as const).flatMap((of): RefusalRow[] => [
    {
      status: /403/,
      of,
      when: ({ message }) => notEnabledWords.test(message),
      outcome: "failed",
      sentence: () => notForInstallations[of].notEnabled,
    },
    { status: /403/, of, when: isByIntegration, outcome: "direct", sentence: () => "" },
    { status: /401/, of, outcome: "failed", sentence: () => notForInstallations[of].notEnabled },
    {
      status: /403/,
      of,
      outcome: "failed",
      sentence: (refusal) => `${notForInstallations[of].notPermitted} GitHub says: ${messageOf(refusal)}`,
    },
  ]),
  { status: /401/, outcome: "failed", sentence: () => revoked },
  {
    status: /400|403/,
    when: ({ message }) => personalTokenWords.test(message),
    outcome: "failed",
    sentence: ({ message }) => `${message.slice(0, 300)}. ${personalTokenReason}`,
  },
  {
    // With details the same message means that the account has no Copilot plan, or a setting is missing.
    status: /403/,
    when: isByIntegration,
    outcome: "failed",
    sentence: ({ message }) =>
      `${message.slice(0, 300)}. GitHub exchanges tokens of its own GitHub Apps only: sign in again, on the page Accounts or with \`dragoman auth\`, with the usual app, or with an OAuth app of your own, whose client id begins with Ov.`,
  },
  { status: /404/, outcome: "direct", sentence: () => "" },
  {
    status: /403/,
    outcome: "failed",
    sentence: (refusal) => `GitHub does not let this account use Copilot: ${messageOf(refusal)}`,
  },
  {
    status: /408|429|5../,
    outcome: "retry",
    sentence: (_, status) => `GitHub cannot issue Copilot tokens at the moment (status ${status}).`,
  },
  {
    status: /.*/,
    outcome: "failed",
    sentence: ({ message }, status) =>
      `GitHub refused to issue a Copilot token (status ${status}). ${message.slice(0, 300)}`.trim(),
  },
];

/** GitHub declines an app as such, and gives no details. */
function isByIntegration({ message, error_details: { notification_id, message: detail } }: Refusal): boolean {
  return /^Resource not accessible by integration/i.test(message) && notification_id === "" && detail === "";
}

/** `Title. Message. See https://…` from `error_details`, or the plain message. */
function messageOf({ message, error_details: { title, message: detail, url } }: Refusal): string {
  const sentences = (detail ? [title, detail] : [message || "no reason was given"])
    .filter((text) => text !== "")
    .map((text) => text.slice(0, 300).replace(/[^.!?]$/, "$&."));
  if (url.startsWith("https://")) sentences.push(`See ${url.slice(0, 300).replace("{EDITOR}", "dragoman")}`);
  return sentences.join(" ");
}

/** Milliseconds, up to an hour. */
function waitIn(headers: Headers): number | undefined {
  const seconds = readRetryAfter(headers, Date.now());
  return seconds === undefined ? undefined : Math.min(seconds * 1000, hourMs);
}

const tokenSchema = lazy(() =>
  z.object({
    token: z.string(),
    expires_at: z.number().optional().catch(undefined),
    refresh_in: z.number().optional().catch(undefined),
    endpoints: endpointsSchema(),
  }),
);

const text = () => z.string().catch("");
const noDetails = { notification_id: "", title: "", message: "", url: "" };
const refusalSchema = lazy(() =>
  z
    .object({
      message: text(),
      error_details: z
        .object({ notification_id: text(), title: text(), message: text(), url: text() })
        .catch(noDetails),
    })
    .catch({ message: "", error_details: noDetails }),
);
type Refusal = z.infer<ReturnType<typeof refusalSchema>>;
