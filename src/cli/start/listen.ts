/** Resolves `--host` and starts to listen, with an explanation if that fails. */

import { demoEnvironments, type Environment } from "../../config/environment";
import { codeOf, ProxyError } from "../../lib/errors";
import { hostNameSource, maxHostName } from "../../lib/host-name";
import { isLoopbackAddress } from "../../lib/net/address";
import type { App } from "../../parts/app";
import { type ListenAddress, type Listening, listen } from "../../server";
import { UsageError } from "../usage-error";
import { findInstance } from "./instance-file";
import { describePortOwner, portOwnerOf, refusedPort } from "./port-owner";

interface Asked {
  port: number;
  /** The real environment, even for the demo. */
  environment: Environment;
}

/**
 * The address of `--host`, with its name if a name was given. All forms of "every address" become one.
 * @throws UsageError if it is neither an address nor a name that can be resolved
 */
export async function bindingFor(host = "127.0.0.1"): Promise<ListenAddress> {
  const bare = host.toLowerCase().replace(/^\[(.*)\]$/, "$1");
  if (bare === "localhost") return { address: "127.0.0.1" };
  if (/^(?:0|0x0)$/.test(bare)) return { address: "0.0.0.0" };
  if (/^[\d.]+$/.test(bare) ? isIPv4(bare) : isIPv6(bare)) return { address: shortened(bare) };
  if (/^[\d.]+$/.test(bare) || bare.length > maxHostName || !hostName.test(bare))
    throw new UsageError("--host must be an address or a name of this machine, such as 127.0.0.1 or 0.0.0.0.");
  return { address: await addressOf(bare), name: bare };
}

const hostName = new RegExp(`^${hostNameSource}$`);

/** The shortest form of an address: `0:0:0:0:0:0:0:1` is `::1`. */
const shortened = (address: string) =>
  address.includes(":") ? new URL(`http://[${address}]`).hostname.slice(1, -1) : address;

/** A loopback address if the name has one, else its first address, like most programs. */
async function addressOf(name: string): Promise<string> {
  try {
    const { lookup } = await import("node:dns/promises");
    const known = await lookup(name, { all: true });
    return (known.find(({ address }) => isLoopbackAddress(address)) ?? known[0]!).address;
  } catch (thrown) {
    throw new UsageError(`Cannot listen on ${name}: this name has no address (${codeOf(thrown)}).`);
  }
}

const isIPv6 = (text: string) => text.includes(":") && URL.canParse(`http://[${text}]`);
const isIPv4 = (text: string) => /^(?:(?:25[0-5]|2[0-4]\d|1?\d?\d)(?:\.(?!$)|$)){4}$/.test(text);

/** @throws ProxyError that names the owner of the port; UsageError if the address does not belong to this machine */
export function listenOrExplain(app: App, { port, environment }: Asked, binding: ListenAddress): Listening {
  try {
    return listen(app, port, binding);
  } catch (thrown) {
    const code = codeOf(thrown);
    if (code === "EADDRINUSE")
      throw new ProxyError(
        "internal",
        `Port ${port} is in use by ${nameOf(port, environment)}. Stop that program, or choose another port with --port (0 picks a free one).`,
        { code: "port_in_use" },
      );
    if (code === "EACCES") throw new ProxyError("internal", refusedPort(port).join(" "), { code: "port_refused" });
    throw new UsageError(`Cannot listen on ${nameOfBinding(binding)}: it is not an address of this machine.`);
  }
}

/** The name or address as the person wrote it. */
export const nameOfBinding = ({ address, name }: ListenAddress): string => name ?? address;

/** The owner of a port: a server or demo recorded in the data folder, or the process that the system reports. */
function nameOf(port: number, environment: Environment): string {
  const holder = portOwnerOf(port);
  // The record of a killed server may name a port that another program uses now.
  const ours = [environment, ...demoEnvironments(environment)]
    .map(({ home }) => findInstance(home))
    .find((running) => running?.url.endsWith(`:${port}`) && (holder?.pid ?? running.pid) === running.pid);
  return ours ? `another dragoman server (process ${ours.pid})` : describePortOwner(holder);
}
