/** Which keys and projects the config binds to accounts. */
import type { Config } from "../../config/schema";

export interface Binding {
  /** ``key `ci` ``, ``project `shop` `` */
  of: string;
  /** `host/login` each. */
  accounts: readonly string[];
}

export function bindingsIn({ auth, projectAccounts }: Pick<Config, "auth" | "projectAccounts">): Binding[] {
  return [
    ...auth.apiKeys.flatMap((key): Binding[] =>
      typeof key === "string" || !key.accounts ? [] : [{ of: `key \`${key.name}\``, accounts: key.accounts }],
    ),
    ...Object.entries(projectAccounts).map(([name, accounts]) => ({ of: `project \`${name}\``, accounts })),
  ];
}
