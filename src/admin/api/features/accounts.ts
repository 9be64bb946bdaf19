/** The accounts, and the sign-ins by which they come. */
import { Elysia } from "elysia";
import { z } from "zod";
import { dayMs } from "../../../lib/format";
import { described } from "../../../web/described";
import {
  accountKeySchema,
  addApp,
  addedAppSchema,
  beginSignIn,
  cancelSignIn,
  newAppSchema,
  newSignInSchema,
  showSignIn,
  signInSchema,
} from "../account-actions";
import { listAccounts } from "../accounts";
import { queries } from "../query";
import { roles, takes } from "../roles";
import { accountSchema, emptyBody } from "../schemas";

export const accounts = new Elysia({ name: "admin-accounts" })
  .use(roles)
  .get(
    "/accounts",
    async ({ app, query: { include_stats, since_ms = app.now() - dayMs } }) => ({
      items: await listAccounts(app, include_stats ? since_ms : undefined),
    }),
    {
      member: true,
      query: queries.accounts,
      response: z.object({ items: z.array(accountSchema) }),
      detail: described({
        about:
          "The accounts: state, plan, remaining quota and its reset; with `include_stats=1`, the usage of each since `since_ms` (default: a day ago).",
      }),
    },
  )
  .post("/accounts/sign-ins", ({ app, body }) => beginSignIn(app, body), {
    lasting: true,
    ...takes(newSignInSchema),
    response: signInSchema,
    detail: described({
      about:
        "Begins a sign-in at GitHub. A person types `user_code` at `address`; meanwhile ask for the sign-in's state.",
      errors: ["conflict", "upstream", "timeout"],
    }),
  })
  .get("/accounts/sign-ins/:id", ({ app, params }) => showSignIn(app, params.id), {
    member: true,
    response: signInSchema,
    detail: described({
      about: "The state of a sign-in: waiting, done, failed or cancelled.",
      errors: ["not_found"],
    }),
  })
  .post("/accounts/sign-ins/:id/cancel", ({ app, params }) => cancelSignIn(app, params.id), {
    member: true,
    response: signInSchema,
    detail: described({
      about: "Stops waiting for a sign-in.",
      reads: emptyBody,
      errors: ["not_found"],
    }),
  })
  .post("/accounts/apps", ({ app, body }) => addApp(app, body), {
    owner: true,
    ...takes(newAppSchema),
    response: addedAppSchema,
    detail: described({
      about: "Signs in a GitHub App where it is installed: its requests are billed to that organization.",
      errors: ["no_account", "upstream", "timeout"],
    }),
  })
  .post(
    "/accounts/pause",
    async ({ app, body: { account_key, paused } }) => {
      await app.ownAccounts.pause(account_key, paused);
      return { paused };
    },
    {
      member: true,
      ...takes(z.strictObject({ account_key: accountKeySchema, paused: z.boolean() })),
      response: z.object({ paused: z.boolean() }),
      detail: described({
        about: 'Pauses an account, which then gets no requests, or resumes it: `{"account_key", "paused"}`.',
        errors: ["not_found", "conflict"],
      }),
    },
  )
  .post(
    "/accounts/order",
    async ({ app, body: { account_keys } }) => ({ account_keys: await app.ownAccounts.arrange(account_keys) }),
    {
      member: true,
      ...takes(z.strictObject({ account_keys: z.array(accountKeySchema).max(1_000) })),
      response: z.object({ account_keys: z.array(z.string()) }),
      detail: described({
        about: 'Sets the order in which accounts are used: `{"account_keys"}` come first, the others follow.',
        errors: ["not_found", "conflict"],
      }),
    },
  )
  .post(
    "/accounts/remove",
    async ({ app, body: { account_key } }) => ({
      removed: true as const,
      revoke_at: await app.ownAccounts.remove(account_key),
    }),
    {
      member: true,
      ...takes(z.strictObject({ account_key: accountKeySchema })),
      response: z.object({ removed: z.literal(true), revoke_at: z.string() }),
      detail: described({
        about:
          'Removes an account: `{"account_key"}`. Its requests stay in the history. `revoke_at` is GitHub\'s page for revoking the sign-in too.',
        errors: ["not_found", "conflict"],
      }),
    },
  );
