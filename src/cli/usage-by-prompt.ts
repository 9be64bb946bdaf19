/** `dragoman usage prompts`: what each of the newest prompts cost, and why. */
import type { z } from "zod";
import { promptPageSchema } from "../admin/api/prompts";
import { toolOf } from "../clients/index";
import { moment, plural } from "../lib/format";
import { costInWords } from "../lib/money";
import { tableRows, wrapped } from "./layout";
import { type ListOptions, listCommand } from "./list-command";
import { ask } from "./running-server";

export const usageByPrompt = (options: ListOptions): Promise<number> =>
  listCommand(options, {
    asks: (server) => ask(server, "/api/admin/prompts", { query: { limit: "20" } }),
    shape: promptPageSchema,
    lines: linesOf,
    notes: notesOf,
  });

type Page = z.output<typeof promptPageSchema>;

/** As the pages call a client: `Claude Code 2.1.330`. */
function nameOf(client: string | null): string {
  const tool = client === null ? undefined : toolOf(client);
  return tool ? `${tool.name} ${tool.version}`.trimEnd() : (client ?? "no name");
}

/** The reason stands below its row: it is a sentence, and a column would break it into words. */
function linesOf({ items }: Page): string[] {
  const rows = items.map((item) => [
    moment(item.started_at_ms, Date.now(), true),
    nameOf(item.client_name),
    item.project ?? "–",
    String(item.request_count),
    costInWords(item) ?? "unknown",
  ]);
  if (rows.length === 0) return [];
  const [heads = [], ...lines] = tableRows([["time", "client", "project", "requests", "cost"], ...rows]);
  return [...heads, ...lines.flatMap((row, at) => [...row, wrapped(items[at]!.why, 2)])];
}

const notesOf = ({ items, without_prompt }: Page): string[] => [
  ...(items.length === 0
    ? ["No client has named a prompt yet. `dragoman connect claude-code --write` sets it to."]
    : []),
  ...(without_prompt.request_count === 0
    ? []
    : [
        "",
        `${plural(without_prompt.request_count, "request")} named no prompt, for ${costInWords(without_prompt) ?? "unknown"}: what they belong to is unknown.`,
      ]),
];
