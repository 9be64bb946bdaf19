/**
 * GitHub's own report of the AI credits that it charged to a person, for one day.
 *
 * `GET /users/{username}/settings/billing/ai_credit/usage?year=&month=&day=` (GitHub REST documentation, "Billing usage", API
 * version 2026-03-10, read in November 2026). It needs a fine-grained token with the user permission "Plan" (read). It names no
 * day in its items, so each day is asked for. It covers 24 months, and only plans that the person pays for: those of an
 * organization or enterprise are reported to its administrators. Items in the wild (June to September 2026) name models as they
 * are shown, `Claude Opus 4.8`, those chosen by Auto as `Auto: Claude Sonnet 4.6`, and count fractions of a credit.
 */
import { z } from "zod";
import { ProxyError } from "../../lib/errors";
import type { Account } from "./account";
import type { GithubAnswer } from "./github";

const version = "2026-03-10";

export interface ReportedCredits {
  /** As GitHub names it. */
  model: string;
  /** Billionths of a credit, those included in the plan too. */
  nanoCredits: number;
  /** What GitHub bills beyond the plan, US dollars. */
  dollars: number;
}

/** Asks with an account's saved sign-in, or with another token of the same person, which is kept nowhere. */
export class CreditReport {
  readonly #account: Account;
  readonly #token: string | undefined;

  constructor(account: Account, token?: string) {
    this.#account = account;
    this.#token = token;
  }

  /** The login that the token belongs to. @throws ProxyError `upstream`, `timeout` */
  async login(): Promise<string> {
    const answer = await this.#account.askGithub("/user", version, this.#token);
    const read = loginSchema.safeParse(answer.json);
    if (answer.status === 200 && read.success) return read.data.login;
    throw this.#refusal(answer, this.#account.id);
  }

  /** @param day `2026-11-23`, as GitHub counts days: by UTC. @throws ProxyError `upstream`, `timeout`: what is missing, and how to give it */
  async ofDay(login: string, day: string): Promise<ReportedCredits[]> {
    const [year, month, date] = day.split("-").map(Number);
    const path = `/users/${encodeURIComponent(login)}/settings/billing/ai_credit/usage?year=${year}&month=${month}&day=${date}`;
    const answer = await this.#account.askGithub(path, version, this.#token);
    if (answer.status !== 200) throw this.#refusal(answer, login);
    const read = reportSchema.safeParse(answer.json);
    if (!read.success)
      throw new ProxyError("upstream", "GitHub's report of AI credits has a form that this version does not know.", {
        cause: read.error,
      });
    return read.data.usageItems.map(({ model, sku, grossQuantity, netAmount }) => ({
      model: model || sku,
      nanoCredits: Math.round(grossQuantity * 1e9),
      dollars: netAmount,
    }));
  }

  #refusal({ status, json }: GithubAnswer, login: string): ProxyError {
    const what = this.#token === undefined ? `The saved sign-in of ${login}` : "This token";
    const { message } = messageSchema.parse(json);
    const sentence = (refusals[status] ?? others)({ what, login, status });
    const detail = status in refusals || !message ? "" : ` It says: ${message.slice(0, 300)}`;
    return new ProxyError("upstream", `${sentence}${detail}`, { code: "github_report_refused" });
  }
}

interface Refused {
  what: string;
  login: string;
  status: number;
}

/** How a person gives what is missing. */
const howToGive =
  "Make a fine-grained token at https://github.com/settings/personal-access-tokens/new with the account permission “Plan: Read-only”, and give it to `dragoman usage reconcile --token -` or in DRAGOMAN_BILLING_TOKEN. It is never stored.";

const refusals: Record<number, (refused: Refused) => string> = {
  401: ({ what }) => `${what} is not accepted by GitHub (401): it is mistyped, expired or revoked. ${howToGive}`,
  403: ({ what, login }) => `${what} may not read the plan of ${login} (GitHub answers 403). ${howToGive}`,
  404: ({ login }) =>
    `GitHub shows no report of AI credits for ${login} (404): an organization or enterprise pays for this plan, and GitHub shows its usage to its administrators only; or the sign-in or token that was used may not read it. ${howToGive}`,
};
const others = ({ status }: Refused) => `GitHub did not answer with its report of AI credits (status ${status}).`;

const loginSchema = z.object({ login: z.string().min(1) });
const messageSchema = z.object({ message: z.string().catch("") }).catch({ message: "" });
/** Quantities may be texts. */
const quantity = () => z.coerce.number().refine(Number.isFinite);
const reportSchema = z.object({
  usageItems: z.array(
    z.object({
      model: z.string().catch(""),
      sku: z.string().catch("unknown"),
      grossQuantity: quantity(),
      netAmount: quantity().catch(0),
    }),
  ),
});
