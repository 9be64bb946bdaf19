/**
 * How GitHub says that it has blocked a person. It may say so at any endpoint: to go on afterwards, with this account or
 * with another one, would be evading the block.
 */
import { ProxyError } from "../errors";

/** Statuses that GitHub gives a block; its codes and sentences vary ("spammy_user", "Your account was suspended"). */
const statuses = new Set([401, 403, 451]);
const words = /spammy|suspend|abus|terms of service violation|programmatic_token|go_http_client|access_revoked/i;

/** @param told Its code and its sentences, in any order. */
export const speaksOfSuspension = (status: number, told: string): boolean => statuses.has(status) && words.test(told);

const rights = /permission|forbidden|unauthorized|authentication/i;

/** The same of an error in a stream, which has no status: its code says it, or is about rights while its sentence says it. */
export const streamSpeaksOfSuspension = (code: string, message: string): boolean =>
  words.test(code) || (rights.test(code) && words.test(message));

const code = "account_suspended";

export const isSuspension = (thrown: unknown): boolean => thrown instanceof ProxyError && thrown.details.code === code;

/** What everybody is told from then on; asking again would not help. */
export const suspensionError = (sentence: string): ProxyError =>
  new ProxyError("permission", sentence, { code, headers: { "x-should-retry": "false" } });

/** GitHub's own words as a reason, whichever endpoint said them. */
export const blockedBecause = (told: string): string =>
  `GitHub has blocked this account: ${told.replace(/[^.!?]$/, "$&.")} Nothing was tried again; read GitHub's message before going on.`;
