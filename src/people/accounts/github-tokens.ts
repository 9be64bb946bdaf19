/** What an account shows to GitHub: the token of its person, of a job, of an App's installation, or of the Copilot CLI. */
import { minuteMs } from "../../lib/format";
import type { Logger } from "../../lib/logger";
import type { AccountKind, SavedAccount, TemporaryAccount } from "./account-store";
import type { GithubCaller, GithubToken } from "./github";

/** `job`: a token of an installation that was given at start, such as that of a job of GitHub Actions. */
export type GithubTokenKind = AccountKind | "job";

export interface GithubTokens {
  readonly kind: GithubTokenKind;
  /** A valid token. @throws ProxyError `no_account` if a person has to act; `upstream`, `timeout`. Never for a token that is kept. */
  get(): Promise<GithubToken>;
  /** GitHub has refused it: the next `get` brings another one, if there can be one. */
  forget(): void;
}

interface Clocks {
  logger: Logger;
  /** Wall clock, ms. */
  now(): number;
  /** Monotonic clock, ms; it may stop while the machine sleeps. */
  monotonic(): number;
}

export function openGithubTokens(
  account: SavedAccount | TemporaryAccount,
  caller: GithubCaller,
  clocks: Clocks,
): GithubTokens {
  const { logger, now } = clocks;
  if ("installation" in account) {
    logger.conceal(account.installation.privateKey);
    // Most servers have no App, and no CLI: what asks for them is loaded when it is needed.
    return new RenewedTokens("app", clocks, async () =>
      (await import("./installation")).mintInstallationToken(caller, account),
    );
  }
  if ("command" in account)
    return new RenewedTokens("copilot-cli", clocks, async () =>
      (await import("./copilot-cli")).endpointOfCli(account.command, caller.hosts, now),
    );
  const { githubToken } = account;
  logger.conceal(githubToken);
  const kept = Promise.resolve({ token: githubToken, lifetime: Number.POSITIVE_INFINITY });
  return { kind: isOfInstallation(githubToken) ? "job" : "person", get: () => kept, forget() {} };
}

/** GitHub's prefix for tokens of installations ("Token formats" of its documents). */
export const isOfInstallation = (githubToken: string): boolean => githubToken.startsWith("ghs_");

/** Milliseconds before its end from which a token is not used any more. */
const endsBefore = 5 * minuteMs;

class RenewedTokens implements GithubTokens {
  readonly kind: GithubTokenKind;
  readonly #clocks: Clocks;
  readonly #ask: () => Promise<GithubToken>;
  /** `left`: ms, by the clock that shows less. The monotonic one may stop during sleep, the wall clock may be set back. */
  #held: { given: GithubToken; left(): number } | undefined;
  #asking: Promise<GithubToken> | undefined;

  constructor(kind: GithubTokenKind, clocks: Clocks, ask: () => Promise<GithubToken>) {
    this.kind = kind;
    this.#clocks = clocks;
    this.#ask = ask;
  }

  async get(): Promise<GithubToken> {
    const left = this.#held?.left() ?? 0;
    if (this.#held && left > endsBefore) return { ...this.#held.given, lifetime: left };
    this.#asking ??= this.#renew().finally(() => {
      this.#asking = undefined;
    });
    return this.#asking;
  }

  forget(): void {
    this.#held = undefined;
  }

  async #renew(): Promise<GithubToken> {
    const { logger, now, monotonic } = this.#clocks;
    const given = await this.#ask();
    logger.conceal(given.token);
    for (const value of Object.values(given.endpoint?.headers ?? {})) if (value.length > 60) logger.conceal(value);
    const [wallEnd, monotonicEnd] = [now() + given.lifetime, monotonic() + given.lifetime];
    this.#held = { given, left: () => Math.min(wallEnd - now(), monotonicEnd - monotonic()) };
    return given;
  }
}
