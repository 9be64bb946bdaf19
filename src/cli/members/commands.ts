/** The commands for the members of a team, as the command line has them. */
import type { CAC } from "cac";
import type { Given } from "../given";

export function addMembers(cli: CAC, { environment, text }: Given): void {
  cli
    .command("member add <name>", "Invite a member of a team, and print the invitation link; again for another key")
    .option("--url <address>", "The address at which members reach the servers, such as https://dragoman.example")
    .action(async (name: string) => {
      const { memberAdd } = await import("./members");
      return memberAdd({ environment: environment(), name, url: text("url") });
    });
  cli
    .command("member ls", "List the members, with their keys and accounts")
    .option("--json", "Print JSON")
    .action(async (options: { json?: boolean }) => {
      const { memberLs } = await import("./members");
      return memberLs({ environment: environment(), json: options.json === true });
    });
  cli
    .command("member rm <name>", "Remove a member: their keys are refused at once, and their accounts are signed out")
    .action(async (name: string) => {
      const { memberRm } = await import("./members");
      return memberRm({ environment: environment(), name });
    });
}
