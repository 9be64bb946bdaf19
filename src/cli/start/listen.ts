/** Where to listen: the option's spellings, and in words why it cannot be. */
import { lookup } from "node:dns/promises";
import type { App } from "../../app";
import type { Environment } from "../../config/environment";
import { codeOf, ProxyError } from "../../errors";
import { hostNameSource, maxHostName } from "../../host-name";
import { isLoopbackAddress } from "../../net/guard";
import { type Binding, type Listening, listen } from "../../server";
import { UsageError } from "../usage-error";
import { findInstance } from "./instance-file";
import { describePortOwner, portOwnerOf } from "./port-owner";

interface Asked {
  port: number;
  /** The person's own, also where the demo has one beside it. */
  environment: Environment;
}

/**
 * What `--host` asks for: an address, or a name and the address it stands for. The spellings of "every address" are one.
 * @throws UsageError for what is neither, and for a name that nobody knows.
 */
export async function bindingFor(host = "127.0.0.1"): Promise<Binding> {
  const bare = host.toLowerCase().replace(/^\[(.*)\]$/, "$1");
  if (bare === "localhost") return { address: "127.0.0.1" };
  if (/^(?:0|0x0)$/.test(bare)) return { address: "0.0.0.0" };
  if (/^[\d.]+$/.test(bare) ? isIPv4(bare) : isIPv6(bare)) return { address: shortened(bare) };
  if (/^[\d.]+$/.test(bare) || bare.length > maxHostName || !hostName.test(bare))
    throw new UsageError("--host must be an address or a name of this machine, such as 127.0.0.1 or 0.0.0.0.");
  return { address: await addressOf(bare), name: bare };
}

const hostName = new RegExp(`^${hostNameSource}$`);

/** One spelling for each address: `0:0:0:0:0:0:0:1` is `::1`. */
const shortened = (address: string) =>
  address.includes(":") ? new URL(`http://[${address}]`).hostname.slice(1, -1) : address;

/** A loopback address where the name has one, else the first, as most programs take it. */
async function addressOf(name: string): Promise<string> {
  try {
    const known = await lookup(name, { all: true });
    return (known.find(({ address }) => isLoopbackAddress(address)) ?? known[0]!).address;
  } catch (thrown) {
    throw new UsageError(`Cannot listen on ${name}: this name has no address (${codeOf(thrown)}).`);
  }
}

const isIPv6 = (text: string) => text.includes(":") && URL.canParse(`http://[${text}]`);
const isIPv4 = (text: string) => /^(?:(?:25[0-5]|2[0-4]\d|1?\d?\d)(?:\.(?!$)|$)){4}$/.test(text);

/** @throws ProxyError that names who holds the port, or UsageError for what is no address of this machine. */
export function listenOrExplain(app: App, { port, environment }: Asked, binding: Binding): Listening {
  try {
    return listen(app, port, binding);
  } catch (thrown) {
    const code = codeOf(thrown);
    if (code === "EADDRINUSE")
      throw new ProxyError(
        "internal",
        `Port ${port} is in use by ${nameOf(port, [environment.home, app.environment.home])}. Stop that program, or choose another port with --port (0 picks a free one).`,
      );
    if (code === "EACCES")
      throw new ProxyError(
        "internal",
        `Port ${port} needs administrator rights. Choose a port above 1023 with --port.`,
      );
    throw new UsageError(`Cannot listen on ${nameOfBinding(binding)}: it is not an address of this machine.`);
  }
}

/** As the person has named it. */
export const nameOfBinding = ({ address, name }: Binding): string => name ?? address;

/** A dragoman that one of the data folders knows of, or the process that the system names. */
function nameOf(port: number, homes: string[]): string {
  const holder = portOwnerOf(port);
  // What a killed one left behind may name a port that is somebody else's by now.
  const ours = homes
    .map((home) => findInstance(home))
    .find((running) => running?.url.endsWith(`:${port}`) && (holder?.pid ?? running.pid) === running.pid);
  return ours ? `another dragoman server (process ${ours.pid})` : describePortOwner(holder);
}
