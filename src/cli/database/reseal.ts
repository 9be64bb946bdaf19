/** `dragoman database reseal` */
import type { Environment } from "../../config/environment";
import { plural } from "../../lib/format";
import { Seals } from "../../lib/seals";
import { Postgres } from "../../team/connection";
import { migrate } from "../../team/schema";
import { reseal } from "../../team/seal-key";
import { say } from "../terminal";
import { UsageError } from "../usage-error";

/** @throws UsageError, or ProxyError as `reseal` does. */
export async function databaseReseal(environment: Environment): Promise<number> {
  const { databaseUrl: url, databaseDirectUrl: directUrl, sealKey, sealKeyNext } = environment;
  if (url === undefined) throw new UsageError("Only a database has sealed secrets: set DRAGOMAN_DATABASE_URL to it.");
  if (!sealKey || !sealKeyNext)
    throw new UsageError("Set DRAGOMAN_SEAL_KEY to the present key and DRAGOMAN_SEAL_KEY_NEXT to the new one.");
  const postgres = new Postgres({ url, directUrl });
  try {
    await migrate(postgres);
    const count = await reseal(postgres, new Seals(sealKey), new Seals(sealKeyNext));
    say(
      `${plural(count, "secret")} sealed with the new key.`,
      "Now set DRAGOMAN_SEAL_KEY to it on every server, and start them. Keep the old key as long as you keep backups that it sealed.",
    );
    return 0;
  } finally {
    await postgres.close();
  }
}
