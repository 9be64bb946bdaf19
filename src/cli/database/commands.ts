/** The commands of a team's database, as the command line has them. */
import type { CAC } from "cac";
import type { Given } from "../given";

export function addDatabase(cli: CAC, { environment }: Given): void {
  cli
    .command("seal rotate", "Seal the secrets in the database with DRAGOMAN_SEAL_KEY_NEXT, while servers run")
    .action(async () => {
      const { sealRotate } = await import("./seal");
      return sealRotate(environment());
    });
}
