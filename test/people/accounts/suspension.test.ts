/** Rows: which answers of GitHub's say that it has suspended the account: all of them must, and no other may. */
import { expect, test } from "bun:test";
import { isSuspensionAnswer } from "../../../src/people/accounts/suspension";

test.each([
  [403, "Sorry. Your account was suspended", true],
  [403, "account_suspended ", true],
  [401, "Your account is suspending. Contact support.", true],
  [403, "Your account has a suspension.", true],
  [403, "Access was revoked for abuse.", true],
  [403, "spammy_user Flagged.", true],
  [451, "Terms of Service violation", true],
  [403, "Blocked for abusive use of `copilot`.", true],
  [500, "Your account was suspended", false],
  // GitHub's former name of a secondary rate limit, which an enterprise's own server still has.
  [403, "You have triggered an abuse detection mechanism. Please wait a few minutes before you try again.", false],
  [403, "The `abus-kg` organization has an IP allow list enabled, and your IP address is not permitted.", false],
  [403, "Syabus has no seat for this user.", false],
  [403, "no_copilot_access No access to GitHub Copilot found. You are currently logged in as suspenders.", false],
  [403, "spammy_user Contact Support. You are currently logged in as octo.", true],
  [403, "Your account was suspended. You are currently logged in as octo.", true],
  [403, "This installation has been suspended", false],
  // No source knows this code: what GitHub calls a suspension stops everything, until somebody has read its words.
  [403, "seat_suspended ", true],
])("%d %s: %p", (status, text, isSuspended) => {
  expect(isSuspensionAnswer(status, text)).toBe(isSuspended);
});
