/** Where to listen: the option's spellings, and in words why it cannot be. */
import type { App } from "../app";
import type { Environment } from "../config/environment";
import { codeOf, ProxyError } from "../errors";
import { type Listening, listen } from "../server";
import { holderOf, nameHolder } from "./holder";
import { findRunning } from "./running";
import { UsageError } from "./usage-error";

interface Asked {
  port: number;
  /** The person's own, also where the demo has one beside it. */
  environment: Environment;
}

/** The spellings of "every address" are one; anything else must be an address or a name. */
export function addressFor(host: string | undefined): string {
  if (host === undefined || host === "localhost") return "127.0.0.1";
  if (/^(?:0|0x0|0\.0\.0\.0)$/i.test(host)) return "0.0.0.0";
  if (/^\[?(?:::|::0|0:0:0:0:0:0:0:0)\]?$/.test(host)) return "::";
  const bare = host.replace(/^\[(.*)\]$/, "$1");
  const numeric = /^[\d.]+$/.test(bare);
  if (numeric ? isIPv4(bare) : /^(?:[0-9a-f:]*:[0-9a-f:.]*|[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?)$/i.test(bare)) return bare;
  throw new UsageError("--host must be an address of this machine, such as 127.0.0.1 or 0.0.0.0.");
}

const isIPv4 = (text: string) => /^(?:(?:25[0-5]|2[0-4]\d|1?\d?\d)(?:\.(?!$)|$)){4}$/.test(text);

/** @throws ProxyError that names who holds the port, or UsageError for what is no address of this machine. */
export function listenOrExplain(app: App, { port, environment }: Asked, host: string): Listening {
  try {
    return listen(app, port, host);
  } catch (thrown) {
    const code = codeOf(thrown);
    if (code === "EADDRINUSE")
      throw new ProxyError(
        "internal",
        `Port ${port} is taken by ${nameOf(port, [environment.home, app.environment.home])}. Stop that program, or choose another port with --port (0 picks a free one).`,
      );
    if (code === "EACCES")
      throw new ProxyError(
        "internal",
        `Port ${port} may not be used by this account; choose one above 1023 with --port.`,
      );
    throw new UsageError(`Cannot listen on ${host}: it is no address of this machine.`);
  }
}

/** A dragoman that one of the data folders knows of, or the process that the system names. */
function nameOf(port: number, homes: string[]): string {
  const holder = holderOf(port);
  // What a killed one left behind may name a port that is somebody else's by now.
  const ours = homes
    .map((home) => findRunning(home))
    .find((running) => running?.url.endsWith(`:${port}`) && (holder?.pid ?? running.pid) === running.pid);
  return ours ? `a dragoman that already runs (process ${ours.pid})` : nameHolder(holder);
}
