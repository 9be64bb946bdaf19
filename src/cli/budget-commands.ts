/** The commands that begin with `budget`. */
import type { CAC } from "cac";
import type { Given } from "./given";

export function addBudgets(cli: CAC, { text, environment }: Given): void {
  cli
    .command("budget", "Show what is used of each budget")
    .option("--name <budget>", "Show this budget, and all that have an amount of their own in it")
    .option("--json", "Print JSON, as GET /api/admin/budgets returns it")
    .action(async (options: { json?: boolean }) => {
      const { budget } = await import("./budget");
      return budget({ environment: environment(), name: text("name"), json: options.json === true });
    });
  cli
    .command("budget add <name>", "Add a budget")
    .option("--limit <number>", "How much may be used in a period")
    .option("--unit <unit>", "credits (default), premium or requests")
    .option("--per <period>", "month (default), week, day or session")
    .option("--then <what>", "At the limit: stop (default), warn or fallback")
    .option("--member <pattern>", "The members whose requests count; * stands for any text")
    .option("--account <pattern>", "The accounts")
    .option("--key <pattern>", "The client keys")
    .option("--model <pattern>", "The models")
    .option("--client <pattern>", "The clients")
    .option("--each <who>", "Give each member, key or account its own limit: member, key or account")
    .option("--limit-of <limits>", "Different limits for some, with --each: anna=3000,ben=500")
    .action(async (name: string) => {
      const { budgetAdd } = await import("./budget");
      const given = {
        ...{ limit: text("limit"), unit: text("unit"), per: text("per"), then: text("then"), each: text("each") },
        ...{ member: text("member"), account: text("account"), key: text("key"), model: text("model") },
        ...{ client: text("client"), limits: text("limit-of") },
      };
      return budgetAdd({ environment: environment(), name, given });
    });
  cli
    .command("budget rm <name>", "Remove a budget")
    .option("-y, --yes", "Do not ask")
    .action(async (name: string, { yes = false }: { yes?: boolean }) => {
      const { budgetRm } = await import("./budget");
      return budgetRm({ environment: environment(), name, yes });
    });
}
