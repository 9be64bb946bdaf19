/** `auto` as a model: what the lists show of it, and which accounts have nothing else. */

import { dialects } from "../../../dialects/hub/conversation";
import { ProxyError, quoted, type Words, words } from "../../../lib/errors";
import type { Account } from "../../../people/accounts/account";
import type { Model } from "../models/model";

/** The name to ask for. The upstream knows no such model. */
export const autoId = "auto";

/** What Auto may look at above all, in GitHub's words (VS Code's tests, 2026-10); without one it weighs both. */
const autoTiers = ["efficiency", "intelligence"] as const;
export type AutoTier = (typeof autoTiers)[number];

const idOf = (tier: AutoTier) => `${autoId}-${tier}`;
const autoIds: readonly string[] = [autoId, ...autoTiers.map(idOf)];

export const isAutoName = (name: string): boolean => autoIds.includes(name.toLowerCase());

/** @param id One of Auto's names. */
export const tierOf = (id: string): AutoTier | undefined => autoTiers.find((tier) => idOf(tier) === id.toLowerCase());

/**
 * On the plans Free and Student the list has many models, and the picker offers none of them: named ones are refused (seen
 * 2026-09). A list without the flag says nothing; and on some Individual accounts all flags are off though names work (pi
 * 1.6.0, 2026-11), so it is never the list alone that decides.
 */
export const picksNone = (models: readonly Model[]): boolean => {
  const chat = models.filter(({ kind, isAbsent }) => kind === "chat" && !isAbsent);
  return chat.length > 0 && chat.every(({ unpicked }) => unpicked === true);
};

/**
 * Plans on which models can be named, whatever their lists look like. `individual` is none of them: so is a student's where
 * GitHub leaves out the SKU. For `free` and `student` the list decides too: nobody loses a model that it offers.
 */
const namingPlans = /^(?:individual_(?:pro|max)|business|enterprise)$/;

/** Plans with nothing but Auto, by their SKU. */
const autoPlans = /^(?:free|student)$/;

/** What is known of an account's Auto. */
interface AutoSigns {
  /** Its list picks no model. */
  picksNone: boolean;
  /** It was refused a model by name, and has served none by name. */
  refusesNames?: boolean;
}

/** Whether an account may have nothing but Auto: nothing says that it takes names. */
export const mayHaveOnlyAuto = ({ knownQuota }: Account, signs: AutoSigns): boolean =>
  signs.picksNone && !namingPlans.test(knownQuota?.plan ?? "");

/** Whether an account has nothing but Auto: its plan or a refusal says so, and its list agrees. */
export const hasOnlyAuto = (account: Account, signs: AutoSigns): boolean =>
  mayHaveOnlyAuto(account, signs) && (autoPlans.test(account.knownQuota?.plan ?? "") || signs.refusesNames === true);

/** `auto` and its tiers, as models of these lists. */
export const autoModels = (listed: readonly Model[]): Model[] => autoIds.map((id) => autoModel(listed, id));

/**
 * The model `auto` of these lists, or one of its tiers. Its limits are the least of the models with a discount, of which Auto's choice is known to
 * come, and unknown without them; it can do what one of the models can.
 */
export function autoModel(listed: readonly Model[], id: string = autoId): Model {
  const chat = listed.filter(({ kind, enabled }) => kind === "chat" && enabled);
  const pool = chat.filter(({ autoDiscount }) => autoDiscount !== undefined);
  const least = (limit: "context" | "prompt" | "output") => {
    const known = pool.flatMap(({ limits }) => limits[limit] ?? []);
    return known.length === 0 ? undefined : Math.min(...known);
  };
  const able = pool.length > 0 ? pool : chat;
  const can = (ability: "tools" | "parallelTools" | "vision" | "structuredOutputs") =>
    able.length === 0 || able.some(({ supports }) => supports[ability]);
  return {
    id: id.toLowerCase(),
    name: `Auto${tierOf(id) ? `, ${tierOf(id)}` : ""} (GitHub Copilot chooses the model)`,
    vendor: "GitHub",
    version: id.toLowerCase(),
    kind: "chat",
    preview: false,
    light: false,
    picked: true,
    enabled: true,
    dialects: [...dialects],
    price: { premium: true },
    limits: { context: least("context"), prompt: least("prompt"), output: least("output") },
    supports: {
      tools: can("tools"),
      parallelTools: can("parallelTools"),
      vision: can("vision"),
      structuredOutputs: can("structuredOutputs"),
      adaptiveThinking: false,
      efforts: [],
    },
  };
}

/**
 * Why a model that was named is refused where only Auto may be asked for.
 * @param said How the upstream refused it, if it was asked.
 */
export const autoOnlyError = (name: string, said?: Words): ProxyError =>
  new ProxyError(
    "not_found",
    words`GitHub refuses \`${quoted(name)}\`: the plan of this account (Copilot Free or Student) offers Auto only, where GitHub Copilot chooses the model, so ask for the model \`${autoId}\`.${said === undefined ? "" : words` It says: ${said}`}`,
    { param: "model", code: autoOnlyCode },
  );

export const autoOnlyCode = "model_auto_only";
