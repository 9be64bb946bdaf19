/**
 * How GitHub reports that it has suspended an account, at any endpoint. Going on afterwards, with this account or another
 * one, would evade the suspension.
 */
import { ProxyError } from "../../lib/errors";

/** Statuses of a suspension; its codes and messages vary ("spammy_user", "Your account was suspended"). */
export const suspensionStatuses = [401, 403, 451];
const words =
  /(?<![a-z])(?:spammy|suspen[ds]|abus(?:i|e(?! (?:detection mechanism|rate limit)))|terms of service violation|programmatic_token|go_http_client|access_revoked)/i;

/**
 * What is no word of GitHub's about the account: a name, such as that of the organization whose list of addresses refuses this
 * machine, which stands in backticks, or the login that Copilot's refusals end with; and that of an app's installation, which an
 * organization's owner suspends.
 */
const ofOthers = /`[^`]*`|\blogged in as \S+|\binstallation (?:has been|was|is) suspended/gi;

/** A code or a message that speaks of a suspension. */
export const suspensionWords: Pick<RegExp, "test"> = { test: (text) => words.test(text.replaceAll(ofOthers, "")) };

/** @param text The code and the message of an error answer, in any order. */
export const isSuspensionAnswer = (status: number, text: string): boolean =>
  suspensionStatuses.includes(status) && suspensionWords.test(text);

/** Error codes of a suspension, compared by their beginning. */
export const suspensionCodes = /^(?:spammy|(?:account_)?suspended|abuse|access_revoked|programmatic_token)/;

const code = "account_suspended";

export const isSuspension = (thrown: unknown): boolean => thrown instanceof ProxyError && thrown.details.code === code;

/** The error that every client gets from then on; a retry would not help. */
export const suspensionError = (sentence: string): ProxyError =>
  new ProxyError("permission", sentence, { code, headers: { "x-should-retry": "false" } });

/** What the account's person does. Words of an answer are often not kept, so none are pointed to. */
export const suspensionAdvice =
  "Nothing was retried. Sign in to GitHub with this account in a browser, and read what it says there, before you continue.";

/** The reason of the account's state. @param said A sentence of GitHub's, or of what its answer named. */
export const suspensionReason = (said: string): string =>
  `GitHub has blocked this account: ${said.replace(/[^.!?]$/, "$&.")} ${suspensionAdvice}`;
