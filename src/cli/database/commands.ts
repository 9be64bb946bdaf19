/** The commands of a team's database, as the command line has them. */
import type { CAC } from "cac";
import type { Given } from "../given";
import { UsageError } from "../usage-error";

export function addDatabase(cli: CAC, { environment, text }: Given): void {
  cli
    .command("migrate", "Copy everything from the data folder to a database, or back; nothing is removed")
    .option("--to <where>", "database (that of DRAGOMAN_DATABASE_URL), its address postgres://…, or folder")
    .option("--dry-run", "Count what would be copied, and change nothing")
    .option("--merge", "Merge into a database that already has data; its config is kept")
    .action(async (options: { dryRun?: boolean; merge?: boolean }) => {
      const to = text("to");
      if (to === undefined) throw new UsageError("Say where to: --to database, or --to folder.");
      const { migrateTo } = await import("./migrate");
      return migrateTo({
        environment: environment(),
        to,
        dryRun: options.dryRun === true,
        merge: options.merge === true,
      });
    });
  cli
    .command("seal rotate", "Seal the secrets in the database with DRAGOMAN_SEAL_KEY_NEXT, while servers run")
    .action(async () => {
      const { sealRotate } = await import("./seal");
      return sealRotate(environment());
    });
}
