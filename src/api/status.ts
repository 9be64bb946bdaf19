/** The front page for people, and the health check for machines. */
import type { App } from "../app";

export function frontPage(app: App, endpoints: readonly string[]): Response {
  return Response.json({
    name: "dragoman",
    version: app.version,
    ...(app.demo
      ? { demo: "DEMO: the upstream is scripted; no account is used and nothing leaves this machine." }
      : {}),
    endpoints,
  });
}

/** 200 as long as requests are accepted; the body says whether an account can serve them. */
export function health(app: App): Response {
  return Response.json({
    status: "ok",
    version: app.version,
    demo: app.demo,
    accounts: app.accounts.map(({ state }) => state.name),
    history: app.history.degraded ? "degraded" : "ok",
  });
}
