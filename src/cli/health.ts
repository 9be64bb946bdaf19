/** The health check of a container: whether the server of the data folder is ready. */
import type { ListOptions } from "./list-command";
import { readinessOf } from "./readiness";
import { print, printJson, say } from "./terminal";

/** @returns The exit code: 0 only if the server is ready. */
export async function healthCheck({ environment, json }: ListOptions): Promise<number> {
  const state = await readinessOf(environment);
  if (json) printJson({ ready: state?.ready ?? false, url: state?.url ?? null, version: state?.version ?? null });
  else if (state?.ready) print(`dragoman ${state.version} is ready at ${state.url}.`);
  else if (state) say(`dragoman ${state.version} at ${state.url} is not ready: ${state.reason}.`);
  else say("No dragoman server of this data folder answers.");
  return state?.ready ? 0 : 1;
}
