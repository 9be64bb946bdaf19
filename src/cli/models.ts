/** `dragoman models`: the models of the running server, with their limits and cost. */
import type { z } from "zod";
import { modelSchema } from "../admin/api/schemas";
import { formatCount, priceInWords, priceUnit, utcDay } from "../lib/format";
import { isAutoName } from "../proxy/upstream/copilot/auto-model";
import { columns, table } from "./layout";
import { type ListOptions, listCommand } from "./list-command";
import { ask, itemsOf } from "./running-server";

/** The members of the answer that are shown. */
const item = modelSchema.pick({
  id: true,
  name: true,
  kind: true,
  preview: true,
  picked: true,
  enabled: true,
  endpoints: true,
  limits: true,
  price: true,
  accounts: true,
  provider: true,
});
type Item = z.infer<typeof item>;

export const models = (options: ListOptions): Promise<number> =>
  listCommand(options, {
    asks: (server) => ask(server, "/api/admin/models"),
    shape: itemsOf(item),
    lines: ({ items }) => modelLines(items),
    notes: ({ items }) => (isBrief() && items.some(({ price }) => price.tokens) ? ["", `cost: in ${priceUnit}`] : []),
  });

/** Whether the unit of a price has no room in its line, and stands below the list. */
const isBrief = () => columns() < 140;

/** One line for each model that a client can call. */
export function modelLines(items: readonly Item[]): string[] {
  const brief = isBrief();
  const head = ["id", "name", "context", "prompt", "output", "endpoints", "cost", "state"];
  const isAutoOffered = items.some(({ id, accounts }) => id === "auto" && accounts.length > 0);
  const rows = items
    .filter(({ kind }) => kind === "chat" || kind === "embeddings")
    .map((model) => [
      model.id,
      model.name,
      tokens(model.limits.context),
      tokens(model.limits.prompt),
      tokens(model.limits.output),
      model.endpoints.join(" "),
      priceInWords(model.price, brief) + promotionOf(model.price),
      stateOf(model, isAutoOffered),
    ]);
  return table([head, ...rows], { spare: ["name", "endpoints", "output", "prompt"] });
}

const tokens = (count: number | null) => (count === null ? "unknown" : formatCount(count));

/** `, 50% less until 2026-12-07` */
function promotionOf({ promotion }: Item["price"]): string {
  if (!promotion) return "";
  const { discount_percent, ends_at_ms } = promotion;
  const discount = discount_percent === null ? "promotion" : `${discount_percent}% less`;
  const end = ends_at_ms === null ? "" : ` until ${utcDay(ends_at_ms)}`;
  return `, ${discount}${end}`;
}

function stateOf({ id, kind, enabled, accounts, preview, picked, provider }: Item, isAutoOffered: boolean): string {
  if (provider !== null) return `of the provider ${provider}`;
  if (!enabled) return "its terms are not accepted yet";
  if (accounts.length === 0 && kind === "chat" && isAutoOffered) return "the plan allows `auto` only";
  if (accounts.length === 0) return "no account may use it";
  if (isAutoName(id)) return "ready, for each conversation";
  if (preview) return "preview";
  return picked ? "ready" : "ready, not in GitHub's model picker";
}
