/** What an account shows to GitHub: the token of its person, of a job, or of an App's installation, which lasts an hour. */
import { minuteMs } from "../../lib/format";
import type { Logger } from "../../lib/logger";
import type { SavedAccount, TemporaryAccount } from "./account-store";
import type { GithubCaller } from "./github";
import type { GithubApp, InstallationToken } from "./installation";

/** `job`: a token of an installation that was given at start, such as that of a job of GitHub Actions. */
export type GithubTokenKind = "person" | "app" | "job";

export interface GithubTokens {
  readonly kind: GithubTokenKind;
  /** A valid token. @throws ProxyError `no_account` if a person has to act; `upstream`, `timeout`. Never for a token that is kept. */
  get(): Promise<InstallationToken>;
  /** GitHub has refused it: the next `get` brings another one, if there can be one. */
  forget(): void;
}

export function openGithubTokens(
  account: SavedAccount | TemporaryAccount,
  caller: GithubCaller,
  { logger, monotonic }: { logger: Logger; monotonic(): number },
): GithubTokens {
  if ("installation" in account) return new InstallationTokens(account, caller, logger, monotonic);
  const { githubToken } = account;
  logger.conceal(githubToken);
  const kept = Promise.resolve({ token: githubToken, lifetime: Number.POSITIVE_INFINITY });
  return { kind: isOfInstallation(githubToken) ? "job" : "person", get: () => kept, forget() {} };
}

/** GitHub's prefix for tokens of installations ("Token formats" of its documents). */
export const isOfInstallation = (githubToken: string): boolean => githubToken.startsWith("ghs_");

/** Milliseconds before its end from which a token is not used any more. */
const endsBefore = 5 * minuteMs;

class InstallationTokens implements GithubTokens {
  readonly kind = "app";
  /** Both by the monotonic clock, ms. */
  #held: { token: string; endsAt: number } | undefined;
  #minting: Promise<InstallationToken> | undefined;

  constructor(
    private readonly given: GithubApp,
    private readonly caller: GithubCaller,
    private readonly logger: Logger,
    private readonly monotonic: () => number,
  ) {
    logger.conceal(given.installation.privateKey);
  }

  async get(): Promise<InstallationToken> {
    const left = (this.#held?.endsAt ?? 0) - this.monotonic();
    if (this.#held && left > endsBefore) return { token: this.#held.token, lifetime: left };
    this.#minting ??= this.#mint().finally(() => {
      this.#minting = undefined;
    });
    return this.#minting;
  }

  forget(): void {
    this.#held = undefined;
  }

  async #mint(): Promise<InstallationToken> {
    // Most servers have no App: what signs for one is loaded when it is needed.
    const { mintInstallationToken } = await import("./installation");
    const minted = await mintInstallationToken(this.caller, this.given);
    this.logger.conceal(minted.token);
    this.#held = { token: minted.token, endsAt: this.monotonic() + minted.lifetime };
    return minted;
  }
}
