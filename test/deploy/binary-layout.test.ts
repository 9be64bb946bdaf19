/** Pairs: the checker of executables: what it says of this machine's own, and of ones that are not what they should be. */
import { expect, test } from "bun:test";
import { anatomyOf } from "../../src/deploy/binary-layout";
import { faultsIn } from "../../src/deploy/build";
import { signAdHoc, signatureOf } from "../../src/deploy/mach-o";
import { fileName, type Target, targets } from "../../src/deploy/targets";
import { testPairs } from "../support/pairs";

const own = await Bun.file(process.execPath).bytes();
const formats: Record<string, string> = { linux: "elf", darwin: "mach-o", win32: "pe" };

test("this machine's own Bun is for this machine", () => {
  expect(anatomyOf(own)).toMatchObject({ format: formats[process.platform], machine: process.arch });
});

test("an executable of Bun without dragoman in it says all that is missing", () => {
  const { format, machine, loader, signature } = anatomyOf(own);
  const target = { name: "own", bun: "own", format, machine, loader, signature } as Target;
  const missing = faultsIn(own, target).join();
  for (const worker of ["tokenizer-worker", "reader-worker", "match-worker"])
    expect(missing).toContain(`root/${worker}.js is not inside`);
  expect(missing).toContain("root/static/admin.css is not inside");
  const other = machine === "x64" ? "arm64" : "x64";
  expect(faultsIn(own, { ...target, machine: other }).join()).toContain(`its machine is ${machine}, not ${other}`);
});

type Places = Record<number, string>;

/** A program of macOS, as small as the checker reads: four commands, and behind them what looks like one more. */
const program: Places = {
  ...{ 0: "cffaedfe 0c000001", 16: "04000000", 32: "19000000 48000000", 40: "__TEXT", 80: "00fe0100 00000000" },
  ...{ 104: "19000000 48000000", 112: "__LINKEDIT", 144: "00200000 00000000" },
  ...{ 176: "19000000 48000000", 184: "__OTHER", 216: "00100000 00000000", 224: "00110000" },
  ...{ 248: "1d000000 10000000 00270000 10000000", 264: "1d000000 10000000" },
};
const signed: Places = { 0: signAdHoc(bytesOf(program), "dragoman").toHex() };

testPairs("deploy", {
  /** What stands where in 10,000 bytes, of which so many are there, and what the checker says of them. */
  anatomy: (places: Places, length = 10_000) => said(() => anatomyOf(bytesOf(places).subarray(0, length))),
  /** What stands elsewhere in a program that was signed here. */
  signature: (places: Places) => said(() => signatureOf(bytesOf(signed, places)) ?? "none"),
  /** What stands elsewhere in a program, and its name: the segment of its signature, what leads to that, and the signature. */
  sign: (places: Places, name: string) =>
    said(() => {
      const bytes = signAdHoc(bytesOf(program, places), name);
      const parts = [bytes.subarray(104, 176), bytes.subarray(248, 264), bytes.subarray(9_984)];
      return parts.map((part) => part.toHex().replace(/.{8}(?!$)/g, "$& "));
    }),
});

test("a signature of macOS is broken by a change of any byte that says what is signed, and of those alone", () => {
  const runs: [from: number, verdict: unknown][] = [];
  const bytes = bytesOf(signed);
  for (const at of bytes.keys()) {
    // Those of the program's pages are many, and all alike.
    if (at > 300 && at < 9_900 && at % 500 > 0) continue;
    bytes[at]! ^= 3;
    const verdict = said(() => signatureOf(bytes) ?? "none");
    bytes[at]! ^= 3;
    const told = String(verdict).startsWith("RangeError") ? "broken" : verdict;
    if (told !== runs.at(-1)?.[1]) runs.push([at, told]);
  }
  // Of the commands their kinds may go, since what they lead to is then none; of the signature what it says of others.
  expect(runs.map(([at, verdict]) => `${at} ${verdict}`).join(", ")).toBe(
    "0 broken, 37 none, 38 broken, 109 none, 110 broken, 180 none, 182 broken, 248 none, 252 broken, 9988 ad-hoc, 10000 broken, 10008 ad-hoc, 10019 signed, 10020 broken, 10024 ad-hoc, 10032 broken, 10040 ad-hoc, 10043 broken, 10044 ad-hoc, 10101 broken",
  );
});

test("each target has a file of its own", () => {
  expect(new Set(targets.map(fileName)).size).toBe(targets.length);
  expect(targets.map(({ name }) => name)).toEqual([
    "linux-x64",
    "linux-arm64",
    "linux-x64-musl",
    "linux-arm64-musl",
    "darwin-x64",
    "darwin-arm64",
    "windows-x64",
  ]);
});

/** Bytes with hexadecimal or text at some places, inside of a larger buffer: 10,000, of which the first 4,096 are 0. */
function bytesOf(...all: Places[]): Uint8Array {
  const parts = all.flatMap(Object.entries).map(([at, value]): [number, Uint8Array] => {
    const bytes = /^[\da-f ]+$/.test(value) ? Uint8Array.fromHex(value.replaceAll(" ", "")) : Buffer.from(value);
    return [Number(at), bytes];
  });
  const length = Math.max(10_000, ...parts.map(([at, { length }]) => at + length));
  const bytes = new Uint8Array(length + 16).map((_, at) => (at < 4112 ? 0 : at)).subarray(16);
  for (const [at, part] of parts) bytes.set(part, at);
  return bytes;
}

function said(act: () => unknown): unknown {
  try {
    return act();
  } catch (thrown) {
    return String(thrown);
  }
}
