/** The ways in which the token exchange can refuse an account. */
import { githubError, type Json, Refusal } from "./wire";

/** With an envelope a person must act. 403 "API rate limit exceeded" means no such thing. */
const envelope = (notification_id: string, title: string, message: string): Json => ({
  can_signup_for_limited: notification_id === "no_copilot_access",
  error_details: {
    url: "https://github.com/github-copilot/signup?editor={EDITOR}",
    ...{ message, title, notification_id },
  },
});
const noAccess = (extra: Json = {}) => githubError(403, "Resource not accessible by integration", extra);
const refusedBy = (id: string, title: string, message: string) => () => noAccess(envelope(id, title, message));

export const exchangeFaults = {
  no_copilot_access: (login: string) =>
    noAccess(
      envelope(
        "no_copilot_access",
        "Signup for GitHub Copilot",
        `No access to GitHub Copilot found. You are currently logged in as ${login}.`,
      ),
    ),
  snippy_not_configured: refusedBy(
    "snippy_not_configured",
    "Settings needed",
    "Choose whether suggestions matching public code are allowed.",
  ),
  billing_locked: refusedBy(
    "billing_locked",
    "Billing problem",
    "Your account is locked because of a billing problem.",
  ),
  "own-app": () => noAccess(),
  "personal-token": () => githubError(400, "Personal Access Tokens are not supported for this endpoint"),
  "rate-limit": () => githubError(403, "API rate limit exceeded for user ID 583231."),
  revoked: () => githubError(401, "Bad credentials"),
  "500": () => new Refusal(500, "", {}),
  "502": () => new Refusal(502, "<html><h1>502 Bad Gateway</h1></html>\n", { "content-type": "text/html" }),
  unreadable: () => new Refusal(200, '{"expires_at":0}', { "content-type": "application/json" }),
} satisfies Record<string, (login: string) => Refusal>;

export type ExchangeFault = keyof typeof exchangeFaults;
