/** The commands for the members of a team, as the command line has them. */
import type { CAC } from "cac";
import type { Given } from "../given";

export function addMembers(cli: CAC, { environment, text }: Given): void {
  cli
    .command("member add <name>", "Invite a member of a team, and print the invitation link; again for another key")
    .option("--url <address>", "The address at which members reach the servers, such as https://dragoman.example")
    .option("--models <ids>", "The models that the member's keys may use, separated by commas; * stands for any text")
    .option("--expires <days>", "How long each key of the member lasts, such as 90d")
    .action(async (name: string) => {
      const { memberAdd } = await import("./members");
      return memberAdd({
        environment: environment(),
        name,
        url: text("url"),
        models: text("models"),
        expires: text("expires"),
      });
    });
  cli
    .command("member set <name>", "Change a member's limits, for all their keys and within a second")
    .option("--models <ids>", "The models that the member's keys may use, separated by commas; `*` for all")
    .option("--expires <days>", "How long each key lasts since it was made, such as 90d; `never` for no end")
    .action(async (name: string) => {
      const { memberSet } = await import("./members");
      return memberSet({ environment: environment(), name, models: text("models"), expires: text("expires") });
    });
  cli
    .command("member withdraw <name>", "Take back a member's invitation link that was not used")
    .action(async (name: string) => {
      const { memberWithdraw } = await import("./members");
      return memberWithdraw({ environment: environment(), name });
    });
  cli
    .command("member ls", "List the members: limits, accounts, keys, and what they used this month")
    .option("--json", "Print JSON, as GET /api/admin/members returns it")
    .action(async (options: { json?: boolean }) => {
      const { memberLs } = await import("./members");
      return memberLs({ environment: environment(), json: options.json === true });
    });
  cli
    .command("member rm <name>", "Remove a member: their keys are refused at once, and their accounts are signed out")
    .option("-y, --yes", "Do not ask")
    .action(async (name: string, { yes = false }: { yes?: boolean }) => {
      const { memberRm } = await import("./members");
      return memberRm({ environment: environment(), name, yes });
    });
}
