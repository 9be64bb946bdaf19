/** Anthropic's gateway protocol: tools sign in as members of a team, get settings, and send telemetry. */
import { Elysia } from "elysia";
import { z } from "zod";
import { gatewayPaths, telemetryPaths } from "../lib/api-paths";
import type { Scope } from "../parts/app";
import { access } from "../web/access";
import { described } from "../web/described";
import { beginLogin, budgetUsage, discovery, endLogin, giveTokens, managedSettings, takeTelemetry } from "./gateway";

const reference = "https://www.rfc-editor.org/rfc/rfc8628";
const oauthForm = (names: readonly string[]) => () => ({
  "application/x-www-form-urlencoded": z.looseObject(
    Object.fromEntries(names.map((name) => [name, z.string().optional()])),
  ),
});

/** The handler of a kind of telemetry. */
const taken =
  (kind: string) =>
  ({ scope, request }: { scope: Scope; request: Request }) =>
    takeTelemetry(scope, request, kind);

const telemetry = (kind: string) => ({
  access: "tools" as const,
  detail: described({
    dialect: "messages",
    about: `Takes the ${kind} of a client (OTLP). They are counted, and not kept.`,
    reads: () => ({ "application/json": z.looseObject({}), "application/x-protobuf": z.string() }),
    answers: () => z.looseObject({}),
  }),
});

export const toolSignIn = new Elysia({ name: "tool-sign-in" })
  .use(access)
  .get(gatewayPaths.discovery, discovery, {
    access: "signIn",
    detail: described({
      about: "Where tools sign in as a member of a team: metadata of an authorization server (RFC 8414).",
      answers: () => z.looseObject({ issuer: z.string() }),
      errors: ["not_found", "permission"],
    }),
  })
  .post(gatewayPaths.device, beginLogin, {
    access: "signIn",
    detail: described({
      about:
        "Begins the sign-in of a tool (RFC 8628): a code that a member confirms on a page. The form may have `surface`, a name for the tool.",
      reads: oauthForm(["surface"]),
      answers: () => z.looseObject({ device_code: z.string(), user_code: z.string() }),
      errors: ["not_found", "rate_limit", "permission"],
      reference,
    }),
  })
  .post(gatewayPaths.token, giveTokens, {
    access: "signIn",
    detail: described({
      about:
        "The short-lived key of a sign-in that was confirmed, or another one for a refresh token. A removed member gets 401 with `invalid_grant`.",
      reads: oauthForm(["grant_type", "device_code", "refresh_token"]),
      answers: () => z.looseObject({ access_token: z.string() }),
      errors: ["not_found", "rate_limit", "permission"],
      reference,
    }),
  })
  .post(gatewayPaths.revoke, endLogin, {
    access: "signIn",
    detail: described({
      about: "Signs a tool out: its key is revoked (RFC 7009).",
      reads: oauthForm(["token"]),
      errors: ["not_found", "permission"],
    }),
  })
  .get(gatewayPaths.settings, managedSettings, {
    access: "usage",
    detail: described({
      dialect: "messages",
      about:
        "The settings of Claude Code for the member, with an `ETag`: models, what budgets allow, and `claudeCodeSettings` of the config.",
      answers: () => z.looseObject({ uuid: z.string(), checksum: z.string(), settings: z.looseObject({}) }),
    }),
  })
  .get(gatewayPaths.usage, budgetUsage, {
    access: "usage",
    detail: described({
      dialect: "messages",
      about:
        "For Claude Code's `/usage`: what a member has used of the budget in AI credits of which the largest share is used, in US cents; 404 without one.",
      answers: () => z.looseObject({ extra_usage: z.looseObject({}), limits: z.array(z.looseObject({})) }),
      errors: ["not_found"],
    }),
  })
  .post(telemetryPaths.metrics, taken("metrics"), telemetry("metrics"))
  .post(telemetryPaths.logs, taken("logs"), telemetry("logs"))
  .post(telemetryPaths.traces, taken("traces"), telemetry("traces"));
