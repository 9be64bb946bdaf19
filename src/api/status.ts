/** The front page for people, and the health check for machines. */
import type { z } from "zod";
import type { App } from "../app";
import type { frontSchema, healthSchema } from "./schemas";

export const frontPage = (app: App, endpoints: string[]): z.infer<typeof frontSchema> => ({
  name: "dragoman",
  version: app.version,
  ...(app.demo ? { demo: "DEMO: the upstream is scripted; no account is used and nothing leaves this machine." } : {}),
  endpoints,
});

/** 200 as long as requests are accepted; the body says whether an account can serve them. */
export const health = (app: App): z.infer<typeof healthSchema> => ({
  status: "ok",
  version: app.version,
  demo: app.demo,
  accounts: app.accounts.map(({ state }) => state.name),
  history: app.history.degraded ? "degraded" : "ok",
});
