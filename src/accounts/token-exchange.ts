/** GitHub token → Copilot token, and what each way of not getting one means. */
import { z } from "zod";
import { asProxyError } from "../errors";
import {
  copilotVersion,
  endpointsSchema,
  type GithubAnswer,
  type GithubCaller,
  getFromGithub,
  revoked,
} from "./github";
import { allowedModelHost, type Hosts } from "./hosts";
import { isSuspensionAnswer, suspensionReason } from "./suspension";

export interface CopilotToken {
  token: string;
  /** Milliseconds from now on: surely accepted for `refreshIn`, dead after `lifetime`. */
  refreshIn: number;
  lifetime: number;
  /** As stated, ms timestamp by GitHub's clock; for show. */
  expiresAt?: number;
  /** What that clock showed, ms timestamp; NaN when it is not stated. */
  statedAt: number;
  /** The model host this token is bound to. */
  endpoint?: string;
  /** Something odd that was put right, for the log. */
  warning?: string;
}

/**
 * - `direct`: this token is not exchanged, the model host takes it as it is.
 * - `failed`: a person must act; `abuse` when GitHub speaks of abuse or suspension.
 * - `retry`: later; `after` in milliseconds where GitHub says when.
 */
export type TokenExchange =
  | { outcome: "token"; copilot: CopilotToken }
  | { outcome: "direct" }
  | { outcome: "failed"; reason: string; abuse?: boolean }
  | { outcome: "retry"; reason: string; after?: number; cause?: unknown };

/** Never throws: every failure has its place in {@link TokenExchange}. */
export async function exchangeToken(caller: GithubCaller, githubToken: string): Promise<TokenExchange> {
  let answer: GithubAnswer;
  try {
    answer = await getFromGithub(caller, "/copilot_internal/v2/token", githubToken, "exchange", copilotVersion);
  } catch (thrown) {
    return { outcome: "retry", reason: asProxyError(thrown).message, cause: thrown };
  }
  if (answer.status === 200) return readCopilotToken(answer, caller.hosts);
  const told = refusalSchema.parse(answer.json);
  const row = unsupportedParams.find(
    ({ status, when }) => status.test(String(answer.status)) && (!when || when(told, answer.status)),
  )!;
  const reason = row.sentence(told, answer.status);
  if (row.outcome === "retry") return { outcome: "retry", reason, after: retryAfter(answer.headers) };
  return row.outcome === "direct" ? { outcome: "direct" } : { outcome: "failed", reason, abuse: row.abuse };
}

const day = 24 * 3600_000;
const clamp = (value: number, least: number, max: number) => Math.min(Math.max(value, least), max);

function readCopilotToken(answer: GithubAnswer, hosts: Hosts): TokenExchange {
  const read = tokenSchema.safeParse(answer.json);
  if (!read.success)
    return { outcome: "retry", reason: "GitHub's answer holds no Copilot token: is a proxy or a portal in the way?" };
  const { token, expires_at, refresh_in, endpoints } = read.data;
  if (token.length > 16_384 || !/^[\x20-\x7e]+$/.test(token))
    return { outcome: "failed", reason: "GitHub handed out a Copilot token that cannot be a header's value." };

  // Times count from GitHub's own clock; this machine's may be a day off.
  const expires = expires_at ?? Number(/(?:^|;)exp=(\d+)/.exec(token)?.[1]);
  const statedAt = Date.parse(answer.headers.get("date") ?? "");
  const left = expires * 1000 - statedAt;
  const believable = left >= 30_000 && left <= day;
  const usual = believable ? left - 300_000 : 1_500_000;
  const refreshIn = clamp(refresh_in === undefined ? usual : refresh_in * 1000, 30_000, believable ? left : day);
  const endpoint = endpoints && allowedModelHost(endpoints.api, hosts);
  const refused = endpoints && !endpoint;
  return {
    outcome: "token",
    copilot: {
      token,
      refreshIn,
      lifetime: believable ? left : refreshIn + 60_000,
      expiresAt: Number.isFinite(expires) ? expires * 1000 : undefined,
      statedAt,
      endpoint,
      warning: refused
        ? `GitHub named ${endpoints.api.slice(0, 200)} as model host, where no token is sent; ${hosts.copilot} is used.`
        : undefined,
    },
  };
}

interface Refusal {
  status: RegExp;
  when?: (told: Told, status: number) => boolean;
  outcome: "direct" | "failed" | "retry";
  abuse?: boolean;
  sentence(told: Told, status: number): string;
}

/** The first row that matches counts; the last matches everything. */
const unsupportedParams: Refusal[] = [
  {
    status: /403/,
    when: ({ message }) => /^API rate limit exceeded|secondary rate limit/i.test(message),
    outcome: "retry",
    sentence: () => "GitHub says that it is asked too often in this account's name at the moment.",
  },
  {
    status: /403/,
    when: ({ error_details }) => error_details.notification_id === "server_error",
    outcome: "retry",
    sentence: () => "GitHub could not find out at the moment whether this account may use Copilot.",
  },
  {
    status: /.*/,
    when: ({ message, error_details: { notification_id, title, message: detail } }, status) =>
      isSuspensionAnswer(status, [message, notification_id, title, detail].join(" ")),
    outcome: "failed",
    abuse: true,
    sentence: (told) => suspensionReason(wordsOf(told)),
  },
  { status: /401/, outcome: "failed", sentence: () => revoked },
  { status: /404/, outcome: "direct", sentence: () => "" },
  {
    status: /403/,
    outcome: "failed",
    sentence: (told) => `GitHub does not let this account use Copilot: ${wordsOf(told)}`,
  },
  {
    status: /408|429|5../,
    outcome: "retry",
    sentence: (_, status) => `GitHub cannot hand out Copilot tokens at the moment (status ${status}).`,
  },
  {
    status: /.*/,
    outcome: "failed",
    sentence: ({ message }, status) =>
      `GitHub refused to hand out a Copilot token (status ${status}). ${message.slice(0, 300)}`.trim(),
  },
];

/** `Title. Message. See https://…` of GitHub's envelope, or its plain message. */
function wordsOf({ message, error_details: { title, message: detail, url } }: Told): string {
  const sentences = (detail ? [title, detail] : [message || "no reason was given"])
    .filter((text) => text !== "")
    .map((text) => text.slice(0, 300).replace(/[^.!?]$/, "$&."));
  if (url.startsWith("https://")) sentences.push(`See ${url.slice(0, 300).replace("{EDITOR}", "dragoman")}`);
  return sentences.join(" ");
}

/** Milliseconds, up to an hour. */
function retryAfter(headers: Headers): number | undefined {
  const seconds = Number(headers.get("retry-after") ?? Number.NaN);
  return Number.isNaN(seconds) ? undefined : clamp(seconds * 1000, 0, 3_600_000);
}

const tokenSchema = z.object({
  token: z.string().min(1),
  expires_at: z.number().optional().catch(undefined),
  refresh_in: z.number().optional().catch(undefined),
  endpoints: endpointsSchema,
});

const word = z.string().catch("");
const noDetails = { notification_id: "", title: "", message: "", url: "" };
const refusalSchema = z
  .object({
    message: word,
    error_details: z.object({ notification_id: word, title: word, message: word, url: word }).catch(noDetails),
  })
  .catch({ message: "", error_details: noDetails });
type Told = z.infer<typeof refusalSchema>;
