/** The commands that begin with `key`. */
import type { CAC } from "cac";
import type { Given } from "./given";

export function addKeys(cli: CAC, { text, environment }: Given): void {
  cli
    .command("key add <name>", "Create a client key and print it, this once")
    .option("--models <ids>", "The models that the key may use, separated by commas; * stands for any text")
    .option("--expires <date>", "When the key expires, such as 2027-01-31")
    .option("-y, --yes", "Also give each connected tool that needs one a key of its own, without asking")
    .action(async (name: string, { yes = false }: { yes?: boolean }) => {
      const { keyAdd } = await import("./key");
      return keyAdd({ environment: environment(), name, models: text("models"), expires: text("expires"), yes });
    });
  cli
    .command("key ls", "List the client keys; a key itself is never shown")
    .option("--json", "Print JSON, as GET /api/admin/keys returns it")
    .action(async (options: { json?: boolean }) => {
      const { keyLs } = await import("./key");
      return keyLs({ environment: environment(), json: options.json === true });
    });
  cli
    .command("key rm <name>", "Remove a client key: its next request is refused")
    .option("-y, --yes", "Do not ask")
    .action(async (name: string, { yes = false }: { yes?: boolean }) => {
      const { keyRm } = await import("./key");
      return keyRm({ environment: environment(), name, yes });
    });
}
