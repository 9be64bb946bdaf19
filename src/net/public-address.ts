/** Which addresses are on the public internet: only these are read for a model, which may have been told to ask for others. */
import { lazy } from "../lazy";

/** Loaded when the first page is read: it takes milliseconds of a start. */
const net = lazy(() => process.getBuiltinModule("node:net"));

/** IANA's registries of special-purpose addresses: this network, private, shared, loopback, link-local, tests, multicast, reserved. */
const closed4: readonly [string, number][] = [
  ["0.0.0.0", 8],
  ["10.0.0.0", 8],
  ["100.64.0.0", 10],
  ["127.0.0.0", 8],
  ["169.254.0.0", 16],
  ["172.16.0.0", 12],
  ["192.0.0.0", 24],
  ["192.0.2.0", 24],
  ["192.88.99.0", 24],
  ["192.168.0.0", 16],
  ["198.18.0.0", 15],
  ["198.51.100.0", 24],
  ["203.0.113.0", 24],
  ["224.0.0.0", 3],
];

/** Of the one public block, what is not: Teredo and other protocols' own, documentation, 6to4. */
const open6: readonly [string, number] = ["2000::", 3];
const closed6: readonly [string, number][] = [
  ["2001::", 23],
  ["2001:db8::", 32],
  ["2002::", 16],
  ["3fff::", 20],
];

const lists = lazy(() => {
  const { BlockList } = net();
  const closed = new BlockList();
  for (const [address, bits] of closed4) closed.addSubnet(address, bits, "ipv4");
  for (const [address, bits] of closed6) closed.addSubnet(address, bits, "ipv6");
  const open = new BlockList();
  open.addSubnet(...open6, "ipv6");
  return { open, closed };
});

/**
 * Addresses that hold another one (IPv4-mapped, NAT64, 6to4) are outside the public block or closed in it.
 * @param address As DNS gives it, or as `URL` writes it, without brackets. A host name is not public.
 */
export function isPublicAddress(address: string): boolean {
  const { open, closed } = lists();
  switch (net().isIP(address)) {
    case 4:
      return !closed.check(address, "ipv4");
    case 6:
      return open.check(address, "ipv6") && !closed.check(address, "ipv6");
    default:
      return false;
  }
}
