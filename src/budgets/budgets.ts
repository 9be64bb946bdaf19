/** The budgets that apply to a request: those of the config, and those of the config's client keys. */
import type { Budget } from "../config/budget-schema";
import type { Config } from "../config/schema";
import { matchesPattern } from "../keys/client-keys";

export type { Budget };

/** What a budget's scope is compared with; null and undefined match no pattern. */
export interface Subject {
  /** The account's login. */
  account: string | null;
  /** The name of the client key. */
  key: string | null;
  /** The model's id. */
  model: string;
  /** Another provider's model, which GitHub does not charge. */
  isProvided?: boolean;
  /** The client's name, as in the history. */
  client: string | null;
  /** Identifies the client's session; null if the client sent none. */
  session: string | null;
}

/** All budgets of a config. The scope of a key's budget is the key. */
export function budgetsOf({ budgets, auth }: Pick<Config, "budgets" | "auth">): readonly Budget[] {
  const ofKeys = auth.apiKeys.flatMap((key) =>
    typeof key === "string" || !key.budgets
      ? []
      : key.budgets.map((budget) => ({
          ...budget,
          name: budget.name ?? `${key.name}/${budget.per}`,
          scope: { key: key.name },
        })),
  );
  return [...budgets, ...ofKeys];
}

/** Whether a request counts for a budget. A budget per session needs a session. */
export function applies({ scope, per }: Budget, subject: Subject): boolean {
  if (per === "session" && subject.session === null) return false;
  return (["account", "key", "model", "client"] as const).every((name) => {
    const [pattern, value] = [scope[name], subject[name]];
    return pattern === undefined || (value !== null && matchesPattern(pattern, value));
  });
}
