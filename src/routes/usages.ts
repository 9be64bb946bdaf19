/** The use of the accounts, and the Copilot token. */
import { Elysia } from "elysia";
import { z } from "zod";
import { wholeNumber } from "../lib/input";
import { access } from "../web/access";
import { described } from "../web/described";
import { upstreamErrors } from "./descriptions";
import { usageListSchema } from "./schemas";
import { sessionLine } from "./session-line";
import { accountUsage, accountUsageItem, token, usageDetailSchema } from "./usage";
import { usageLine } from "./usage-line";

const accountIndex = () => wholeNumber().describe("As `/usage` lists the accounts, from 0.");

const usageLineQuery = () =>
  z.object({
    format: z.string().max(500).optional().describe("Text with fields, for each account."),
    session: z
      .string()
      .min(1)
      .max(256)
      .optional()
      .describe("The id of a session, as the client sends it: what its last prompt and all of it cost comes first."),
  });

export const usages = new Elysia({ name: "usages" })
  .use(access)
  .get("/usage", ({ scope }) => accountUsageItem(scope.accounts), {
    access: "usage",
    detail: described({
      about: "The remaining quota and the state of each account.",
      answers: usageListSchema,
    }),
  })
  .get(
    "/usage/line",
    async ({ scope, query: { session, format } }) => {
      const line =
        session === undefined
          ? usageLine((await accountUsageItem(scope.accounts)).accounts, format, scope.now())
          : await sessionLine(scope, session, format);
      return new Response(`${line}\n`, {
        headers: { "content-type": "text/plain; charset=utf-8", "cache-control": "no-store" },
      });
    },
    {
      access: "tools",
      query: z.lazy(usageLineQuery),
      detail: described({
        about:
          "The usage of the accounts as one line of text, for status bars; with `session`, what this session and its last prompt cost, how long the cache keeps it, and what is left of the account in use; `format` has the fields {account}, {left}, {remaining}, {entitlement}, {used}, {percent}, {unit}, {state} and {reset}.",
        answers: () => ({ "text/plain": z.string() }),
      }),
    },
  )
  .get("/usage/:accountIndex", ({ scope, params }) => accountUsage(scope, params.accountIndex), {
    access: "usage",
    params: z.lazy(() => z.object({ accountIndex: accountIndex() })),
    detail: described({
      about: "One account, counted from 0, with GitHub's own `quota_snapshots`.",
      answers: usageDetailSchema,
      errors: ["not_found"],
    }),
  })
  .get("/token", ({ scope, query }) => token(scope, query.account), {
    access: "token",
    query: z.lazy(() => z.object({ account: accountIndex().optional() })),
    detail: described({
      about:
        "The current Copilot token and its expiry (seconds since 1970); `?account=<index>` for another account. A GitHub token that is used directly is never shown: 409.",
      answers: () =>
        z.object({
          token: z.string(),
          expires_at: z.number().nullable().describe("Seconds since 1970."),
        }),
      errors: ["not_found", "conflict", ...upstreamErrors],
    }),
  });
