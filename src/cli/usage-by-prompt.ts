/** `dragoman usage --by prompt`: what each of the newest prompts cost, and why. */
import { promptPageSchema } from "../admin/api/prompts";
import type { Environment } from "../config/environment";
import { ProxyError } from "../errors";
import { formatCredits, formatUnits, plural, zonedTime } from "../format";
import { table } from "./layout";
import { askAsOwner, demoNotice, readAs, requireServer } from "./running-server";
import { print, printJson, say } from "./terminal";

export async function usageByPrompt({
  environment,
  json,
}: {
  environment: Environment;
  json: boolean;
}): Promise<number> {
  const server = requireServer(environment);
  const answer = await askAsOwner(server, "/api/admin/prompts?limit=20");
  if (answer === undefined)
    throw new ProxyError("authentication", `The server at ${server.url} requires its admin token: set ADMIN_TOKEN.`);
  const page = readAs(promptPageSchema, answer, server);
  if (json) {
    printJson(page);
    return 0;
  }
  if (server.demo) say(demoNotice, "");
  const cost = (of: { nano_credits: number | null; premium_units: number | null }) =>
    of.nano_credits === null
      ? of.premium_units === null
        ? "unknown"
        : `${formatUnits(of.premium_units)} premium`
      : `${formatCredits(of.nano_credits)} credits`;
  const rows = page.items.map((item) => [
    zonedTime(item.started_at_ms, Date.now()),
    item.client_name ?? "no name",
    item.project ?? "–",
    String(item.request_count),
    cost(item),
    item.why,
  ]);
  if (rows.length === 0) say("No client has named a prompt yet. `dragoman connect claude-code --write` sets it to.");
  else print(...table([["time", "client", "project", "requests", "cost", "why"], ...rows]));
  const { request_count } = page.without_prompt;
  if (request_count > 0)
    say(
      "",
      `${plural(request_count, "request")} named no prompt, for ${cost(page.without_prompt)}: of what is unknown.`,
    );
  return 0;
}
