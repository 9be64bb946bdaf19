/** Whether a server is running, which one, and whether the port is free. */
import { createServer } from "node:net";
import type { z } from "zod";
import { metaSchema } from "../../admin/api/schemas";
import { openFilesOf } from "../../books/observe/open-files";
import type { Environment } from "../../config/environment";
import { healthSchema } from "../../routes/schemas";
import { askAsOwner, lookAt, recordedIn, serverOf } from "../running-server";
import { describePortOwner, portOwnerOf, refusedPort } from "../start/port-owner";
import { about, type CheckContext, type Finding } from "./check";

const shape = healthSchema().pick({ version: true, demo: true });
type Health = z.infer<typeof shape>;

/** The address for clients: the running server, else the running demo, else where `start` would listen. */
export const addressOf = ({ environment, port }: CheckContext): string =>
  recordedIn(environment)[0]?.url ?? `http://127.0.0.1:${port}`;

export async function checkPort(subject: CheckContext): Promise<Finding[]> {
  const { environment, port, version } = subject;
  const here = `http://127.0.0.1:${port}`;
  const recorded = recordedIn(environment);
  const servers = await Promise.all(
    recorded.map(async ({ url, pid }) => describe(url, pid, await askHealth(url), version)),
  );
  // It may hold the port under another name or address.
  const holder = portOwnerOf(port)?.pid;
  const isKnown = recorded.some(({ url, pid }) => url === here || pid === holder);
  return [...servers, ...(await serverFacts(environment)), ...(isKnown ? [] : await checkFree(port, here, version))];
}

/** The other checks look at these by themselves. */
const checkedHere = new Set(["Accounts", "API access", "Admin access"]);

/** What is wrong by the running server's own word; nothing if it tells its owner only, or is another version. */
async function serverFacts(environment: Environment): Promise<Finding[]> {
  const running = serverOf(environment);
  const answer = running && (await askAsOwner(running, "/api/admin/meta").catch(() => undefined));
  const read = metaSchema.pick({ facts: true }).safeParse(answer);
  return (read.data?.facts ?? []).flatMap(({ name, state, says, more }) => {
    if (checkedHere.has(name) || (state !== "warn" && state !== "bad")) return [];
    const finding = about(`server's ${name.toLowerCase()}`);
    return [state === "bad" ? finding.fail(says, more || undefined) : finding.warn(says, more || undefined)];
  });
}

async function checkFree(port: number, here: string, version: string): Promise<Finding[]> {
  const named = about("port");
  const fault = await triedPort(port);
  if (fault === undefined) return [named.ok(`Port ${port} is free.`)];
  if (fault === "EACCES") return [named.fail(...refusedPort(port))];
  const holder = portOwnerOf(port);
  const health = await askHealth(here);
  if (health) return [describe(here, holder?.pid, health, version)];
  return [
    named.fail(
      `Port ${port} is in use by ${describePortOwner(holder)}.`,
      "Stop that program, or start dragoman with another --port.",
    ),
  ];
}

/** The share of the open files from which on a server may soon have none left. */
const nearlyAll = 0.8;

function describe(url: string, pid: number | undefined, health: Health | undefined, version: string): Finding {
  const server = about("server");
  const process = pid === undefined ? "" : ` (process ${pid})`;
  if (!health)
    return server.warn(
      `The server recorded at ${url}${process} does not answer.`,
      "If no dragoman is running, this is a leftover record and harmless.",
    );
  const named = `dragoman ${health.version}${health.demo ? " (DEMO)" : ""} is running at ${url}${process}`;
  if (health.version !== version)
    return server.warn(`${named}; this command is ${version}.`, "Restart the server to use this version.");
  const files = pid === undefined ? undefined : openFilesOf(pid);
  if (files?.limit !== undefined && files.open > files.limit * nearlyAll)
    return server.warn(
      `${named}, and has ${files.open} of ${files.limit} files and connections open.`,
      "Raise its limit (`ulimit -n` before the start, `LimitNOFILE=` of a service): without a free one no request is served.",
    );
  return server.ok(`${named}.`);
}

/** Undefined if no dragoman answers. */
const askHealth = async (url: string): Promise<Health | undefined> => (await lookAt(url, "/health", shape))?.answer;

/** Takes the port for a moment. @returns The system's error code if that fails. */
function triedPort(port: number): Promise<string | undefined> {
  return new Promise((resolve) => {
    const server = createServer();
    server.once("error", (error) => resolve("code" in error ? String(error.code) : "unknown"));
    server.listen({ port, host: "127.0.0.1", exclusive: true }, () => server.close(() => resolve(undefined)));
  });
}
