/** Signs in by device code (RFC 8628): a person types a short code in the browser while we poll GitHub. */

import { setTimeout as wait } from "node:timers/promises";
import { z } from "zod";
import type { Awaitable } from "../../lib/awaitable";
import { ProxyError } from "../../lib/errors";
import { entryOf } from "../../lib/json";
import { type GithubCaller, postToGithub } from "./github";
import type { Hosts, SignInApp } from "./hosts";

/** What to show to the person who signs in. */
export interface ShownCode {
  /** What to type: `ABCD-1234`. */
  userCode: string;
  /** Where to type it. */
  address: string;
  /** False when the address is not GitHub's own: show it with the warning, and never open it. */
  mayOpen: boolean;
  warning?: string;
  /** Seconds until the code expires. */
  expiresIn: number;
}

export interface SignInSteps extends GithubCaller {
  app: SignInApp;
  /** The first poll waits for it. */
  show(code: ShownCode): Awaitable<void>;
  /** Milliseconds; rejects when the signal aborts. */
  sleep?: (milliseconds: number, signal?: AbortSignal) => Promise<unknown>;
}

/** @throws The signal's reason */
export const pauseIn = ({ signal, sleep }: Pick<SignInSteps, "signal" | "sleep">, milliseconds: number) =>
  sleep ? sleep(milliseconds, signal) : wait(milliseconds, undefined, { signal });

/**
 * The whole sign-in; returns the person's GitHub token. While GitHub cannot be reached it keeps polling until the code
 * expires.
 * @throws ProxyError `authentication` with what ended it (declined, expired …), or the signal's reason.
 */
export async function signIn(signing: SignInSteps): Promise<string> {
  const { app, show, signal } = signing;
  const code = await requestDeviceCode(signing, app);
  await show(toShownCode(code, signing.hosts));
  let interval = code.interval;
  for (let passed = 0; passed < code.expiresIn; ) {
    // One second more than required: clocks drift, and each early poll makes the interval longer.
    const pause = clamp(interval + 1, 5, 60);
    await pauseIn(signing, pause * 1000);
    const startedAt = performance.now();
    const poll = await pollSignIn(signing, app, code).catch((thrown) => {
      if (signal?.aborted || !(thrown instanceof ProxyError) || thrown.kind === "authentication") throw thrown;
      return "pending" as const; // GitHub cannot be reached: poll again
    });
    passed += pause + (performance.now() - startedAt) / 1000;
    if (typeof poll === "object" && "token" in poll) return poll.token;
    if (typeof poll === "object") interval = clamp(poll.slower ?? interval + 5, 5, 60);
  }
  throw new ProxyError("authentication", failures.expired_token!, { code: "expired_token" });
}

/** What GitHub is asked with. */
interface DeviceGrant {
  deviceCode: string;
  userCode: string;
  verificationUri: string;
  /** Seconds. */
  expiresIn: number;
  /** Seconds between polls. */
  interval: number;
}

/** @throws ProxyError `authentication` when GitHub declines, `upstream` or `timeout` when it cannot be reached. */
async function requestDeviceCode(caller: GithubCaller, app: SignInApp): Promise<DeviceGrant> {
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
    throw new ProxyError("upstream", `GitHub's answer has no sign-in code (status ${answer.status}); try again later.`);
  const detail = error_description ?? error ?? `status ${answer.status}`;
  throw new ProxyError("authentication", `GitHub does not let the app ${app.name} sign in by code (${detail}).`, {
    code: error,
  });
}

/** `slower`: the new interval in seconds, if GitHub states one. */
type Poll = { token: string } | "pending" | { slower: number | undefined };

/**
 * One poll. The body decides, never the status: pending polls arrive with 200, and reportedly with 400 too.
 * @throws ProxyError `authentication` with what ended the sign-in; `upstream` or `timeout` when GitHub could not be asked.
 */
async function pollSignIn(caller: GithubCaller, app: SignInApp, code: DeviceGrant): Promise<Poll> {
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
    throw new ProxyError("upstream", `GitHub's answer to a poll is not valid (status ${answer.status}).`);
  const detail =
    error === undefined ? `status ${answer.status}` : [error, error_description].filter(Boolean).join(": ");
  throw new ProxyError("authentication", entryOf(failures, error ?? "") ?? `GitHub ended the sign-in (${detail}).`, {
    code: error,
  });
}

const failures: Record<string, string> = {
  expired_token: "The code expired before it was approved. Run `dragoman auth` for a new one.",
  access_denied: "The sign-in was declined in the browser; nothing was saved.",
  device_flow_disabled: "This app does not allow signing in by code; choose another one with --oauth-app.",
};

/** Only GitHub's own page is opened: another page that asks for the code could belong to an attacker. */
function toShownCode({ userCode, verificationUri, expiresIn }: DeviceGrant, { web }: Hosts): ShownCode {
  const mayOpen = URL.canParse(verificationUri) && new URL(verificationUri).origin === new URL(web).origin;
  const warning = `This address is not at ${web}. Do not open it unless you know why it differs.`;
  return { userCode, address: verificationUri, mayOpen, expiresIn, ...(mayOpen ? {} : { warning }) };
}

const clamp = (value: number, min: number, max: number) => Math.min(Math.max(value, min), max);

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
