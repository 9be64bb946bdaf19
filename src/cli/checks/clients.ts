/** Which known clients are configured to use dragoman, and whether their keys are accepted. */

import { type ClientId, clientIds, clientOf } from "../../clients/index";
import { type ClientStatus, clientStatus, presentSettings } from "../../clients/status";
import { plural } from "../../lib/format";
import { modelsOf } from "../connect/models";
import { takesKeysOf } from "../connect/tools";
import { findServer, isAccepted, recordedIn } from "../running-server";
import { about, type CheckContext, type Finding } from "./check";
import { addressOf } from "./port";

/** Reports only clients that have a settings file: nothing is known about the others. */
export async function checkClients(subject: CheckContext): Promise<Finding[]> {
  const { home, env } = subject;
  const url = addressOf(subject);
  const states = clientIds.map((id) => [id, clientStatus(id, { home, env, url })] as const);
  const found = (await Promise.all(states.map(([id, status]) => findingsOf(id, status, subject)))).flat();
  if (found.length > 0) return [...found, about("clients").ok(lookedAt)];
  return [
    about("clients").ok("No settings file of a known client was found. `dragoman connect <client>` sets one up."),
  ];
}

const lookedAt =
  "Only files of the person and the machine were looked at: not those of projects, nor the shells of tools.";

/** Everything about one client, row by row: what is on, what is off, and what turns it on. */
export async function checkClient(id: ClientId, subject: CheckContext): Promise<Finding[]> {
  const { home, env } = subject;
  const { name, file, switches = [] } = clientOf(id);
  const client = about(name);
  if (!file)
    return [
      client.ok(
        `It has no settings file. \`dragoman connect ${id}\` prints what to set, \`dragoman run ${id}\` starts it so.`,
      ),
    ];
  const status = clientStatus(id, { home, env, url: addressOf(subject) });
  if (status.state === "absent")
    return [client.warn("There is no settings file.", `To set it up, run \`dragoman connect ${id} --write\`.`)];
  const found = await findingsOf(id, status, subject);
  const isHere = status.state === "here" || status.state === "overridden";
  const on = isHere ? switches.filter((each) => !status.off?.includes(each)) : [];
  return [...found, ...on.map(({ path, does }) => client.ok(`${path.at(-1)} is set. ${does}`)), client.ok(lookedAt)];
}

async function findingsOf(id: ClientId, status: ClientStatus, subject: CheckContext): Promise<Finding[]> {
  const { state, file, fault, caveats = [], off = [] } = status;
  const url = addressOf(subject);
  const client = about(clientOf(id).name);
  const write = `\`dragoman connect ${id} --write\``;
  if (state === "unreadable")
    return [client.warn(`${file} cannot be read (${fault}).`, "Fix the file, or repair it in that client.")];
  if (state === "elsewhere") return [client.warn(`${file} does not point to ${url}.`, `To change that, run ${write}.`)];
  if (state === "absent") return [];
  const taken = await keysTaken(status, subject);
  if (taken === false)
    return [client.fail(`${file} points to dragoman, which refuses its key.`, `To give it one, run ${write}.`)];
  if (state === "overridden")
    return [
      client.warn(
        `${file} names ${url}, but ${caveats.join(", and ")}.`,
        "Remove that if the client should use dragoman.",
      ),
    ];
  const besides = caveats.map((caveat) =>
    client.warn(`${file} points to dragoman, but ${caveat}.`, "Remove that if dragoman should serve it."),
  );
  const below = off.map(({ path, does }) =>
    client.warn(`${file} lacks ${path.at(-1)}. ${does}`, `To turn it on, run ${write}.`),
  );
  const untried = taken === undefined ? " Its key is not in the file, and was not tried." : "";
  const listed = await listedBy(id, subject);
  const list =
    listed && listed.there < listed.all
      ? [client.ok(`${file} lists ${listed.there} of ${plural(listed.all, "model")}. To list them all, run ${write}.`)]
      : [];
  return [client.ok(`${file} points to dragoman.${untried}`), ...besides, ...below, ...list];
}

/** How many of the server's models a file that lists models has; undefined for another file, or where no server says them. */
async function listedBy(id: ClientId, subject: CheckContext): Promise<{ there: number; all: number } | undefined> {
  const server = findServer(subject.environment);
  const models = server && (await modelsOf(server).catch(() => undefined)); // other checks say what is wrong with it
  if (!models) return undefined;
  const { choice } = models;
  const ids = choice.all.map((model) => JSON.stringify(model.id));
  const has = (settings: unknown) => ids.filter((quoted) => JSON.stringify(settings).includes(quoted));
  if (ids.length < 2 || has(clientOf(id).setUp({ url: "", models: choice }).edits).length < ids.length)
    return undefined;
  return { there: has(presentSettings(id, subject)).length, all: ids.length };
}

/** True also if no server is running, or none answers, which other checks report. */
async function keysTaken(status: ClientStatus, { environment }: CheckContext): Promise<boolean | undefined> {
  const url = recordedIn(environment)[0]?.url;
  if (url === undefined) return true;
  return takesKeysOf(status, { accepts: (key) => isAccepted(url, key) }).catch(() => true);
}
