/** `dragoman seal rotate` */
import type { Environment } from "../../config/environment";
import { plural } from "../../format";
import { rotateSeals } from "../../team/seal-rotation";
import { openPostgresStores } from "../../team/stores";
import { say } from "../terminal";
import { UsageError } from "../usage-error";

export async function sealRotate(environment: Environment): Promise<number> {
  const { databaseUrl, sealKey, sealKeyNext } = environment;
  if (databaseUrl === undefined)
    throw new UsageError("Only a database has sealed secrets: set DRAGOMAN_DATABASE_URL to it.");
  if (!sealKey || !sealKeyNext)
    throw new UsageError("Set DRAGOMAN_SEAL_KEY to the present key and DRAGOMAN_SEAL_KEY_NEXT to the new one.");
  const stores = await openPostgresStores(environment, { follow: false });
  try {
    const { count, unopened } = await rotateSeals(stores.postgres, stores.seals, sealKeyNext);
    say(
      `${plural(count, "secret")} sealed with the new key; servers use it from now on.`,
      "Set DRAGOMAN_SEAL_KEY to it on every server, and remove DRAGOMAN_SEAL_KEY_NEXT. Keep the old key as long as you keep backups that it sealed.",
    );
    if (unopened.length === 0) return 0;
    say(
      `${plural(unopened.length, "secret")} stayed as before, because no key opens what is there: ${unopened.join(", ")}.`,
      "Sign such an account in again, or remove it; anything else is made anew by itself.",
    );
    return 1;
  } finally {
    await stores.close();
  }
}
