/** Changes that no test has to notice, each with the reason. */

interface Unnoticed {
  file: string;
  /** As `bun run test:mutations` prints it. */
  change: string;
  reason: string;
}

const chosen = "The amount is a choice: a test would only repeat it.";

const notice = (file: string, reason: string, ...changes: string[]): Unnoticed[] =>
  changes.map((change) => ({ file, change, reason }));

export const unnoticed: readonly Unnoticed[] = [
  ...notice(
    "src/web/guard.ts",
    "Only who waits two minutes for the database sees it.",
    "if (isAdmin(path) && !bodyMethods.has(request.method)) connection.keepOpen(); → if (isAdmin(path) || !bodyMethods.has(request.method)) connection.keepOpen();",
    "if (isAdmin(path) && !bodyMethods.has(request.method)) connection.keepOpen(); → if (isAdmin(path) && bodyMethods.has(request.method)) connection.keepOpen();",
  ),
  ...notice(
    "src/people/budgets/ledger.ts",
    "Nothing is stored of a reservation without entries, so nothing is removed either.",
    "if (entries.length > 0) this.#ask(() => this.#statements.remove.run(id)); → if (entries.length >= 0) this.#ask(() => this.#statements.remove.run(id));",
  ),
  ...notice(
    "src/people/budgets/ledger.ts",
    chosen,
    "const keptFor = 400 * dayMs; → const keptFor = 401 * dayMs;",
    "export const reservationLifetime = 65 * 60_000; → export const reservationLifetime = 66 * 60_000;",
    "export const reservationLifetime = 65 * 60_000; → export const reservationLifetime = 65 * 60001;",
  ),
  ...notice(
    "src/people/budgets/entries.ts",
    "An amount is stored and read in the same parts, however many they are.",
    "const partsOf = { credits: 1e9, premium: 1e6, requests: 1 } as const; → const partsOf = { credits: 1e9, premium: 1e6, requests: 2 } as const;",
    "const partsOf = { credits: 1e9, premium: 1e6, requests: 1 } as const; → const partsOf = { credits: 1e9, premium: 1000001, requests: 1 } as const;",
  ),
  ...notice(
    "src/people/budgets/unable.ts",
    chosen,
    "const patience = 2_000; → const patience = 2001;",
    "const pause = 20; → const pause = 21;",
  ),
  ...notice(
    "src/people/budgets/unable.ts",
    "At that very instant one try more or less is made.",
    "if (!isBusy(thrown) || performance.now() > until) throw thrown; → if (!isBusy(thrown) || performance.now() >= until) throw thrown;",
  ),
  ...notice("src/people/budgets/guard.ts", chosen, "const maxModels = 1_000; → const maxModels = 1001;"),
  ...notice(
    "src/people/keys/members.ts",
    chosen,
    "export const maxDailyKeys = 100; → export const maxDailyKeys = 101;",
  ),
  ...notice(
    "src/people/keys/logins.ts",
    chosen,
    ".slice(0, 50) → .slice(0, 51)",
    "export const loginTimes = { code: 600, interval: 5, access: 3_600, unusedDays: 30 } as const; → export const loginTimes = { code: 601, interval: 5, access: 3_600, unusedDays: 30 } as const;",
    "export const loginTimes = { code: 600, interval: 5, access: 3_600, unusedDays: 30 } as const; → export const loginTimes = { code: 600, interval: 6, access: 3_600, unusedDays: 30 } as const;",
    "export const loginTimes = { code: 600, interval: 5, access: 3_600, unusedDays: 30 } as const; → export const loginTimes = { code: 600, interval: 5, access: 3601, unusedDays: 30 } as const;",
    "const picked = [...crypto.getRandomValues(new Uint8Array(64))].filter((byte) => byte < 240); → const picked = [...crypto.getRandomValues(new Uint8Array(65))].filter((byte) => byte < 240);",
  ),
  ...notice(
    "src/people/keys/logins.ts",
    "Of all letters one would be likelier, by a twelfth, which only thousands of codes would show.",
    "const picked = [...crypto.getRandomValues(new Uint8Array(64))].filter((byte) => byte < 240); → const picked = [...crypto.getRandomValues(new Uint8Array(64))].filter((byte) => byte < 241);",
    "const picked = [...crypto.getRandomValues(new Uint8Array(64))].filter((byte) => byte < 240); → const picked = [...crypto.getRandomValues(new Uint8Array(64))].filter((byte) => byte <= 240);",
  ),
  ...notice(
    "src/people/keys/page-sign-ins.ts",
    chosen,
    "export const pageSignInLifetimeMs = 12 * hourMs; → export const pageSignInLifetimeMs = 13 * hourMs;",
    "const maxEnded = 100_000; → const maxEnded = 100001;",
  ),
  ...notice(
    "src/people/budgets/guard.ts",
    "Only the first holder is used.",
    "const [highest] = (await this.holders(budget, { limit: 1 })).states; → const [highest] = (await this.holders(budget, { limit: 2 })).states;",
  ),
  ...notice(
    "src/people/keys/client-keys.ts",
    "The end of the function refuses such a text too.",
    "if (id.length < first.length + last.length || !id.startsWith(first) || !id.endsWith(last)) return false; → if (id.length < first.length - last.length || !id.startsWith(first) || !id.endsWith(last)) return false;",
  ),
];
