/** IP addresses: this machine's own, ranges, and the network that a client belongs to. */
import { isLoopbackName, loopbackSource } from "../host-name";
import { lazy } from "../lazy";

/** Loaded for ranges only: it takes milliseconds of a start. */
const net = lazy(() => process.getBuiltinModule("node:net"));

/** An IPv4 address in an IPv6 one ends as itself or in hexadecimal. */
const loopbackAddress = new RegExp(`^(?:::1|(?:::ffff:)?${loopbackSource}|::ffff:7f[\\da-f]{2}:[\\da-f]{1,4})$`, "i");

/** `127.0.0.0/8`, `::1`, and both as IPv6 sockets write them. @param address In its shortest form, as sockets report it. */
export const isLoopbackAddress = (address: string | null): boolean => address !== null && loopbackAddress.test(address);

/** @param host With or without a port. */
export const isLoopbackHost = (host: string): boolean => isLoopbackName(host.replace(/:\d+$/, "").toLowerCase());

/** For `localhost`, 127.0.0.0/8 and ::1 plain http is safe, and no proxy is used. */
export const isLoopbackUrl = (url: string): boolean => isLoopbackName(new URL(url).hostname);

const mappedPrefix = /^::ffff:(?=\d+\.)/i;

/** An address without brackets and port, and an IPv4 address in its own form. */
export const bareAddress = (address: string): string =>
  address
    .replace(/^\[(.*)\](?::\d+)?$/, "$1")
    .replace(/^(\d+(?:\.\d+){3}):\d+$/, "$1")
    .replace(mappedPrefix, "");

/** The whole IPv4 address, or the /64 prefix of an IPv6 address, because one client usually holds a whole /64. */
export function networkOf(address: string): string {
  const bare = address.replace(mappedPrefix, "");
  if (!bare.includes(":")) return bare;
  const [head = "", tail] = bare.split("::");
  const [first, last] = [head, tail].map((groups) => (groups ? groups.split(":") : []));
  const zeros = tail === undefined ? [] : Array<string>(Math.max(0, 8 - first!.length - last!.length)).fill("0");
  return [...first!, ...zeros, ...last!].slice(0, 4).join(":");
}

type Family = "ipv4" | "ipv6";

/** Undefined for a text that is no address. */
export const familyOf = (address: string): Family | undefined =>
  ({ 0: undefined, 4: "ipv4", 6: "ipv6" })[net().isIP(address) as 0 | 4 | 6] as Family | undefined;

export interface AddressRange {
  address: string;
  bits: number;
  family: Family;
}

/** Reads `10.0.0.0/8`, or one address; undefined for a text that is neither. */
export function rangeOf(text: string): AddressRange | undefined {
  const [address = "", prefix, more] = text.split("/");
  const family = familyOf(address);
  const most = family === "ipv4" ? 32 : 128;
  const bits = prefix === undefined ? most : /^\d{1,3}$/.test(prefix) ? Number(prefix) : Number.NaN;
  return family && more === undefined && bits <= most ? { address, bits, family } : undefined;
}

/** Whether an address is in one of the ranges. A host name is in none. */
export function inRanges(ranges: readonly AddressRange[]): (address: string) => boolean {
  const list = new (net().BlockList)();
  for (const { address, bits, family } of ranges) list.addSubnet(address, bits, family);
  return (address) => {
    const family = familyOf(address);
    return family !== undefined && list.check(address, family);
  };
}
