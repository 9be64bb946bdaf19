/** Signing in by device code (RFC 8628): a person types a short code in the browser while we ask now and then. */

import { setTimeout as wait } from "node:timers/promises";
import { z } from "zod";
import { ProxyError } from "../errors";
import { entryOf } from "../json";
import { type GithubCaller, postToGithub } from "./github";
import type { Hosts, SignInApp } from "./hosts";

/** What a person needs to see. */
export interface ShownCode {
  /** What to type: `ABCD-1234`. */
  userCode: string;
  /** Where to type it. */
  address: string;
  /** False when the address is not GitHub's own: show it with the warning, and never open it. */
  mayOpen: boolean;
  warning?: string;
  /** Seconds until the code is void. */
  expiresIn: number;
}

export interface SignInSteps extends GithubCaller {
  app: SignInApp;
  show(code: ShownCode): void;
  /** Milliseconds; rejects when the signal aborts. */
  sleep?: (milliseconds: number, signal?: AbortSignal) => Promise<unknown>;
}

/**
 * The whole sign-in; ends with the person's GitHub token. While GitHub cannot be reached it goes on asking until the
 * code expires.
 * @throws ProxyError `authentication` with what ended it (declined, expired …), or the signal's reason.
 */
export async function signIn(signing: SignInSteps): Promise<string> {
  const { app, show, signal, sleep = (milliseconds) => wait(milliseconds, undefined, { signal }) } = signing;
  const code = await requestDeviceCode(signing, app);
  show(shown(code, signing.hosts));
  let interval = code.interval;
  for (let passed = 0; passed < code.expiresIn; ) {
    // A second more than asked for: clocks drift, and each early poll makes the interval longer.
    const pause = clamp(interval + 1, 5, 60);
    await sleep(pause * 1000, signal);
    const askedAt = performance.now();
    const poll = await pollSignIn(signing, app, code).catch((thrown) => {
      if (signal?.aborted || !(thrown instanceof ProxyError) || thrown.kind === "authentication") throw thrown;
      return "pending" as const; // GitHub cannot be reached: perhaps soon
    });
    passed += pause + (performance.now() - askedAt) / 1000;
    if (typeof poll === "object" && "token" in poll) return poll.token;
    if (typeof poll === "object") interval = clamp(poll.slower ?? interval + 5, 5, 60);
  }
  throw new ProxyError("authentication", endings.expired_token!, { code: "expired_token" });
}

interface DeviceCode {
  deviceCode: string;
  userCode: string;
  verificationUri: string;
  /** Seconds. */
  expiresIn: number;
  /** Seconds between polls. */
  interval: number;
}

/** @throws ProxyError `authentication` when GitHub declines, `upstream` or `timeout` when it cannot be reached. */
async function requestDeviceCode(caller: GithubCaller, app: SignInApp): Promise<DeviceCode> {
  const answer = await postToGithub(caller, "/login/device/code", { client_id: app.clientId, scope: "read:user" });
  const read = deviceCodeSchema.safeParse(answer.json);
  if (read.success)
    return {
      deviceCode: read.data.device_code,
      userCode: read.data.user_code,
      verificationUri: read.data.verification_uri,
      expiresIn: clamp(read.data.expires_in, 60, 3600),
      interval: clamp(read.data.interval, 5, 60),
    };
  const { error, error_description } = pollSchema.parse(answer.json);
  if (answer.status >= 500 || (answer.status === 200 && error === undefined))
    throw new ProxyError(
      "upstream",
      `GitHub's answer holds no sign-in code (status ${answer.status}); try again later.`,
    );
  const told = error_description ?? error ?? `status ${answer.status}`;
  throw new ProxyError("authentication", `GitHub does not let the app ${app.name} sign in by code (${told}).`, {
    code: error,
  });
}

/** `slower`: GitHub wants longer pauses, of so many seconds if it says. */
type Poll = { token: string } | "pending" | { slower: number | undefined };

/**
 * One poll. The body decides, never the status: pending polls arrive as 200, and are said to come as 400 too.
 * @throws ProxyError `authentication` with what ended the sign-in; `upstream` or `timeout` when GitHub could not be asked.
 */
async function pollSignIn(caller: GithubCaller, app: SignInApp, code: DeviceCode): Promise<Poll> {
  const answer = await postToGithub(caller, "/login/oauth/access_token", {
    client_id: app.clientId,
    device_code: code.deviceCode,
    grant_type: "urn:ietf:params:oauth:grant-type:device_code",
  });
  const { access_token, error, error_description, interval } = pollSchema.parse(answer.json);
  if (access_token !== undefined) return { token: access_token };
  if (error === "authorization_pending") return "pending";
  if (error === "slow_down") return { slower: interval };
  if (error === undefined && (answer.status >= 500 || answer.status === 429 || answer.status === 200))
    throw new ProxyError("upstream", `GitHub's answer to a poll does not read (status ${answer.status}).`);
  const told = error === undefined ? `status ${answer.status}` : [error, error_description].filter(Boolean).join(": ");
  throw new ProxyError("authentication", entryOf(endings, error ?? "") ?? `GitHub ended the sign-in (${told}).`, {
    code: error,
  });
}

const endings: Record<string, string> = {
  expired_token: "The code expired before it was approved. Run `dragoman auth` for a new one.",
  access_denied: "The sign-in was declined in the browser; nothing was saved.",
  device_flow_disabled: "This app does not allow signing in by code; choose another one with --oauth-app.",
};

/** A page that asks for the code could be anybody's: only GitHub's own is opened. */
function shown({ userCode, verificationUri, expiresIn }: DeviceCode, { web }: Hosts): ShownCode {
  const mayOpen = URL.canParse(verificationUri) && new URL(verificationUri).origin === new URL(web).origin;
  const warning = `This address is not at ${web}. Do not open it unless you know why it is another one.`;
  return { userCode, address: verificationUri, mayOpen, expiresIn, ...(mayOpen ? {} : { warning }) };
}

const clamp = (value: number, least: number, max: number) => Math.min(Math.max(value, least), max);

/** Printable and without spaces: these go to a terminal, or into a header. */
const printable = z.string().regex(/^[\x21-\x7e]{1,1024}$/);

const deviceCodeSchema = z.object({
  device_code: printable,
  user_code: printable,
  verification_uri: printable,
  expires_in: z.number().catch(900),
  interval: z.number().catch(5),
});

const pollSchema = z
  .object({
    access_token: printable.optional().catch(undefined),
    error: z.string().max(200).optional().catch(undefined),
    error_description: z.string().max(500).optional().catch(undefined),
    interval: z.number().positive().optional().catch(undefined),
  })
  .catch({});
