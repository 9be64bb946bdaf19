/** What the looks of `dragoman doctor --deep` are made of. */

import { isObject } from "../../lib/json";
import { plainName } from "../../lib/json-shape";
import type { Account } from "../../people/accounts/account";
import type { Model } from "../../proxy/upstream/models/model";
import type { Ask, Seen } from "./ask";
import { cheapest } from "./plan";

export type Json = Record<string, unknown>;

/** What a look has found: names, codes and counts by name. */
export type Findings = Readonly<Record<string, string | number | boolean | null | readonly string[]>>;

export interface LookContext {
  account: Account;
  /** Items of the model list, as they were sent, and read. */
  items: readonly Json[];
  models: readonly Model[];
  /** The answer of the quota endpoint. */
  user: unknown;
  ask: Ask;
  /** The answers so far. */
  seen: readonly Seen[];
}

export interface DeepLook {
  /** By which the report names it. */
  name: string;
  /** What it asks, for the person who decides. */
  question: string;
  /** Calls that cost something. */
  calls: number;
  /** The model that they ask; undefined if there is none, so that the look is left out. A free look needs none. */
  model?(context: LookContext): Model | undefined;
  run(context: LookContext, model: Model | undefined): Promise<Findings>;
}

/** Tokens of one call, as an upper bound. */
export const tokensOfLook = { input: 4_000, output: 1_100 };

export const objectAt = (value: unknown, name: string): Json => {
  const found = isObject(value) ? value[name] : undefined;
  return isObject(found) ? found : {};
};
export const namesIn = (value: unknown): string[] =>
  isObject(value)
    ? Object.keys(value)
        .map(plainName)
        .filter((name) => name !== "(no plain name)")
        .sort()
    : [];
export const union = (lists: readonly (readonly string[])[]): string[] => [...new Set(lists.flat())].sort();

export const withMessages = (filter: (model: Model) => boolean) => (context: LookContext) =>
  cheapest(context.models.filter((model) => model.enabled && model.dialects.includes("messages") && filter(model)));
export const anyClaude = withMessages(() => true);
export const withResponses = ({ models }: LookContext) =>
  cheapest(models.filter((model) => model.enabled && model.dialects.includes("responses")));

export const question = "Answer with one word: ready";
export const message = (model: Model | undefined, more: Json): Json => ({
  model: model?.id,
  max_tokens: 16,
  messages: [{ role: "user", content: question }],
  ...more,
});
export const statusOf = (name: string, { status, code }: Seen): Findings => ({
  [`${name}_status`]: status,
  ...(code !== null && { [`${name}_code`]: code }),
});
export const blocksIn = ({ json }: Seen): Json[] => {
  const content = isObject(json) ? (json.content ?? json.output) : undefined;
  return Array.isArray(content) ? content.filter(isObject) : [];
};
