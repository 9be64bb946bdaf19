/** What an executable's first bytes say: for which system and machine it is, what loads it, whether its signature fits. */
import { type Signature, signatureOf } from "./mach-o";

export interface Anatomy {
  format: "elf" | "mach-o" | "pe";
  machine: "x64" | "arm64";
  /** The program that loads it, where it names one: it tells one C library from the other. */
  loader?: string;
  signature?: Signature;
}

/** @throws Error when it is no executable we know. */
export function anatomyOf(bytes: Uint8Array): Anatomy {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  if (view.byteLength < 4096) throw new Error("This is too small to be an executable.");
  if (view.getUint32(0) === 0x7f454c46) return readElf(bytes, view);
  if (view.getUint32(0, true) === 0xfeedfacf)
    return {
      format: "mach-o",
      machine: machineIn(machMachines, view.getUint32(4, true)),
      signature: signatureOf(bytes),
    };
  if (view.getUint16(0) === 0x4d5a) return readPe(view);
  throw new Error(`This is no executable: it begins with ${bytes.subarray(0, 4).toHex()}.`);
}

const elfMachines = new Map([
  [0x3e, "x64"],
  [0xb7, "arm64"],
] as const);
const machMachines = new Map([
  [0x0100_0007, "x64"],
  [0x0100_000c, "arm64"],
] as const);
const peMachines = new Map([
  [0x8664, "x64"],
  [0xaa64, "arm64"],
] as const);

function machineIn(known: Map<number, Anatomy["machine"]>, value: number): Anatomy["machine"] {
  const machine = known.get(value);
  if (!machine) throw new Error(`This is for a machine we do not know: 0x${value.toString(16)}.`);
  return machine;
}

function readElf(bytes: Uint8Array, view: DataView): Anatomy {
  const machine = machineIn(elfMachines, view.getUint16(18, true));
  const [table, size, count] = [
    Number(view.getBigUint64(32, true)),
    view.getUint16(54, true),
    view.getUint16(56, true),
  ];
  let loader: string | undefined;
  for (let header = table; header < table + size * count; header += size) {
    if (view.getUint32(header, true) !== 3) continue;
    const [from, length] = [Number(view.getBigUint64(header + 8, true)), Number(view.getBigUint64(header + 32, true))];
    loader = new TextDecoder().decode(bytes.subarray(from, from + length - 1));
  }
  return { format: "elf", machine, loader };
}

function readPe(view: DataView): Anatomy {
  const header = view.getUint32(0x3c, true);
  if (view.getUint32(header) !== 0x5045_0000)
    throw new Error("This begins as a program for DOS, and is none for Windows.");
  return { format: "pe", machine: machineIn(peMachines, view.getUint16(header + 4, true)) };
}
