/** What the health page checks: each fact of the running server that can be wrong, and what to do about it. */
import type { App } from "../../../app";
import { duration, plural } from "../../../format";
import type { Team } from "../../../keys/team";
import type { Meta } from "../../api/meta";
import { unwritten, withoutDatabase } from "../alerts";

export interface HealthCheck {
  tone: "good" | "warn" | "bad" | "idle";
  name: string;
  message: string;
}

export const toneNames = { good: "OK", warn: "Warning", bad: "Failed", idle: "Note" };

export function checksOf(app: App, meta: Meta, exposed: boolean): HealthCheck[] {
  const { config, team } = app;
  const refused = app.unsupportedParams.all().length;
  const losses = app.losses.current.length;
  return [
    accountsCheck(app),
    ...(team ? [databaseCheck(team)] : []),
    meta.history === "degraded"
      ? {
          tone: "bad",
          name: "History",
          message: unwritten(app),
        }
      : { tone: "good", name: "History", message: "Every request is recorded." },
    config.fault !== undefined
      ? { tone: "bad", name: "Config", message: `${config.fault} The previous config stays in effect.` }
      : config.waiting.length > 0
        ? { tone: "warn", name: "Config", message: `Restart dragoman to apply: ${config.waiting.join(", ")}.` }
        : { tone: "good", name: "Config", message: "The config is valid." },
    ...(losses > 0
      ? [
          {
            tone: "warn" as const,
            name: "Upstream",
            message: `Copilot no longer sends ${plural(losses, "member")} that numbers are read from; see below.`,
          },
        ]
      : []),
    accessCheck(app, exposed),
    adminCheck(app),
    refused > 0
      ? {
          tone: "idle",
          name: "Unsupported fields",
          message: `${plural(refused, "field")} currently removed from requests; see Models.`,
        }
      : { tone: "good", name: "Unsupported fields", message: "None found recently." },
  ];
}

function accessCheck({ clientKeys, members, allowOpen }: App, exposed: boolean): HealthCheck {
  const keys = clientKeys.length;
  if (members?.needKeys)
    return { tone: "good", name: "API access", message: "With a key of a member, or with one of the owner's." };
  if (keys === 0 && !allowOpen)
    return {
      tone: "bad",
      name: "API access",
      message:
        "Nobody is served: other machines reach this server, and it has no client key left. Create one under Keys.",
    };
  if (exposed && keys === 0)
    return {
      tone: "bad",
      name: "API access",
      message:
        "Anyone who can reach this machine can use your accounts: the server accepts connections from other machines, and no client key is set.",
    };
  if (exposed)
    return {
      tone: "good",
      name: "API access",
      message: `This machine and other machines, with one of ${plural(keys, "client key")}.`,
    };
  if (keys === 0)
    return {
      tone: "good",
      name: "API access",
      message: "Any program on this machine, without a key. Web pages must be listed in `allowedOrigins`.",
    };
  return {
    tone: "good",
    name: "API access",
    message: `Programs on this machine, with one of ${plural(keys, "client key")}.`,
  };
}

function accountsCheck({ accounts, allAccounts }: App): HealthCheck {
  const name = "Accounts";
  const ready = accounts.filter(({ state }) => state.name === "ready").length;
  const failed = accounts.filter(({ state }) => state.name === "failed");
  if (allAccounts.length === 0)
    return {
      tone: "bad",
      name,
      message: "No account is signed in. Sign in on the page Accounts, or run `dragoman auth`.",
    };
  // The owner of a team may have none.
  if (accounts.length === 0)
    return { tone: "idle", name, message: `None of yours; ${plural(allAccounts.length, "account")} of members.` };
  if (ready === 0) return { tone: "bad", name, message: `None of ${plural(accounts.length, "account")} is ready.` };
  const message = `${ready} of ${accounts.length} ready`;
  if (failed.length === 0) return { tone: "good", name, message: `${message}.` };
  return { tone: "warn", name, message: `${message}; failed: ${failed.map(({ id }) => id).join(", ")}.` };
}

function databaseCheck({ isDatabaseAway, silence }: Team): HealthCheck {
  const name = "Database";
  if (!isDatabaseAway) return { tone: "good", name, message: "It answers." };
  return {
    tone: "bad",
    name,
    message: `It has not answered for ${duration(silence)}. ${withoutDatabase}`,
  };
}

function adminCheck({ adminAuth, environment, members }: App): HealthCheck {
  const name = "Admin access";
  if (adminAuth === "remote" && environment.adminToken === undefined)
    return { tone: "idle", name, message: "This machine only: ADMIN_TOKEN is not set." };
  if (environment.adminToken === undefined)
    return { tone: "warn", name, message: "Nobody: --admin-auth=always needs ADMIN_TOKEN." };
  const machines = adminAuth === "remote" ? "This machine, and other machines" : "Every machine";
  const message = `${machines} with the admin token${members?.needKeys ? "; members with their keys" : ""}.`;
  return { tone: "good", name, message };
}
