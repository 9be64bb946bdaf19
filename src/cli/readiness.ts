/** Whether the server of a data folder is ready, as its own health endpoint says. */

import { demoEnvironments, type Environment } from "../config/environment";
import { entryOf } from "../lib/json";
import { readySchema } from "../routes/schemas";
import { lookAt } from "./running-server";
import { findInstance, type Instance } from "./start/instance-file";

export interface Readiness {
  url: string;
  ready: boolean;
  version: string;
  /** Why it is not ready, as the end of a sentence. */
  reason: string;
}

const reasons: Record<string, string> = {
  draining: "it is stopping",
  config: "its config file has an error, which `dragoman doctor` names",
};

/** @param demo Only the demo; otherwise the server itself, or else the demo. @returns Undefined if none runs or answers. */
export async function readinessOf(environment: Environment, { demo = false } = {}): Promise<Readiness | undefined> {
  const running = instanceOf(environment, demo);
  return running && askReady(running);
}

const instanceOf = (environment: Environment, demo: boolean) =>
  [...(demo ? [] : [environment]), ...demoEnvironments(environment)].flatMap(({ home }) => findInstance(home) ?? [])[0];

async function askReady({ url }: Instance): Promise<Readiness | undefined> {
  const said = await lookAt(url, "/health/ready", readySchema().pick({ status: true, version: true }));
  if (!said) return undefined; // it stopped, or another program has its port now
  const { ok: ready, status, answer } = said;
  return { url, ready, version: answer.version, reason: entryOf(reasons, answer.status) ?? `it answered ${status}` };
}

/** Asks until the server is ready. @returns Undefined if it is not within `timeoutMs`. */
export async function waitUntilReady(
  environment: Environment,
  { demo, timeoutMs }: { demo: boolean; timeoutMs: number },
): Promise<Readiness | undefined> {
  const deadline = performance.now() + timeoutMs;
  while (performance.now() < deadline) {
    const state = await readinessOf(environment, { demo });
    if (state?.ready) return state;
    await Bun.sleep(100);
  }
  return undefined;
}
