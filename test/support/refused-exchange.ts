/** GitHub refuses an account its Copilot token, in the forms in which its exchange has been seen to do so. */
import type { Demo } from "../../src/demo/demo";

const refusal = (status: number, message: string, more: object = {}) =>
  Response.json(
    { message, documentation_url: "https://docs.github.com/rest", status: String(status), ...more },
    { status },
  );

/** With these details a person must act. */
const mustAct = (notification_id: string, title: string, message: string) =>
  refusal(403, "Resource not accessible by integration", {
    can_signup_for_limited: notification_id === "no_copilot_access",
    error_details: {
      ...{ notification_id, title, message },
      url: "https://github.com/github-copilot/signup?editor={EDITOR}",
    },
  });

const faults = {
  no_copilot_access: (login: string) =>
    mustAct(
      "no_copilot_access",
      "Signup for GitHub Copilot",
      `No access to GitHub Copilot found. You are currently logged in as ${login}.`,
    ),
  snippy_not_configured: () =>
    mustAct("snippy_not_configured", "Settings needed", "Choose whether suggestions matching public code are allowed."),
  billing_locked: () =>
    mustAct("billing_locked", "Billing problem", "Your account is locked because of a billing problem."),
  "own-app": () => refusal(403, "Resource not accessible by integration"),
  "personal-token": () => refusal(400, "Personal Access Tokens are not supported for this endpoint"),
  revoked: () => refusal(401, "Bad credentials"),
} satisfies Record<string, (login: string) => Response>;
export type ExchangeFault = keyof typeof faults;

/**
 * From now on the exchange of these accounts fails.
 * @param logins All accounts when missing.
 * @returns Ends it.
 */
export function refuseExchange(demo: Demo, fault: ExchangeFault, logins?: readonly string[]): () => void {
  let isOver = false;
  demo.intercept(
    "/copilot_internal/v2/token",
    ({ account = "" }) => (isOver || logins?.includes(account) === false ? undefined : faults[fault](account)),
    Number.POSITIVE_INFINITY,
  );
  return () => {
    isOver = true;
  };
}
