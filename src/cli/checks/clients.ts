/** Which known clients are configured to use dragoman. */

import { clientIds, clientOf } from "../../clients/index";
import { clientStatus } from "../../clients/status";
import { about, type CheckContext, type Finding } from "./check";
import { addressOf } from "./port";

/** Reports only clients that have a settings file: nothing is known about the others. */
export function checkClients(subject: CheckContext): Finding[] {
  const url = addressOf(subject);
  const { home, env } = subject;
  const found = clientIds.flatMap((id) => {
    const { state, file, fault, caveats = [] } = clientStatus(id, { home, env, url });
    const { name } = clientOf(id);
    const client = about(name);
    if (state === "here") return [client.ok(`${file} points to dragoman.`)];
    if (state === "overridden")
      return [
        client.warn(
          `${file} names ${url}, but ${caveats.join(", and ")}.`,
          "Remove that from the file if the client should use dragoman.",
        ),
      ];
    if (state === "elsewhere")
      return [client.warn(`${file} does not point to ${url}.`, `To change that, run: dragoman connect ${id} --write`)];
    if (state === "unreadable")
      return [client.warn(`${file} cannot be read (${fault}).`, "Fix the file, or repair it in that client.")];
    return [];
  });
  if (found.length > 0) return found;
  return [
    about("clients").ok("No settings file of a known client was found. `dragoman connect <client>` sets one up."),
  ];
}
