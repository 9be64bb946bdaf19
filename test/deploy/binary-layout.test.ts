/** Rows: the checker of executables: what it says of this machine's own, and of ones that are not what they should be. */
import { describe, expect, test } from "bun:test";
import { anatomyOf } from "../../src/deploy/binary-layout";
import { faultsIn } from "../../src/deploy/build";
import { signAdHoc, signatureOf } from "../../src/deploy/mach-o";
import { fileName, type Target, targets } from "../../src/deploy/targets";

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

test("what is no executable is refused", () => {
  expect(() => anatomyOf(new Uint8Array(10))).toThrow("too small");
  expect(() => anatomyOf(new TextEncoder().encode("#!/bin/sh\n".repeat(1000)))).toThrow("no executable");
  expect(() => anatomyOf(made("elf", 0xf3))).toThrow("a machine we do not know: 0xf3");
});

test.each([
  ["elf", 0xb7, { format: "elf", machine: "arm64", loader: "/lib/ld-musl-aarch64.so.1" }],
  ["pe", 0x8664, { format: "pe", machine: "x64" }],
  ["mach-o", 0x0100_0007, { format: "mach-o", machine: "x64", signature: "broken" }],
] as const)("of another system: %s", (format, machine, wanted) => {
  expect(anatomyOf(made(format, machine))).toEqual(wanted);
});

describe("a signature of macOS", () => {
  const program = made("mach-o", 0x0100_000c);
  const signed = signAdHoc(program, "dragoman");

  test("that is made here fits, and is the last of the file", () => {
    expect(signatureOf(program)).toBe("broken");
    expect(signatureOf(signed)).toBe("ad-hoc");
    expect(signAdHoc(signed, "dragoman")).toEqual(signed);
    const view = new DataView(signed.buffer);
    const linked = Number(view.getBigUint64(32 + 72 + 40, true));
    expect(linked + Number(view.getBigUint64(32 + 72 + 48, true))).toBe(signed.length);
  });

  test.each([300, 4096, 9_983])("a signature of macOS is broken by a change of byte %d", (at) => {
    const changed = signed.slice();
    changed[at]! ^= 1;
    expect(signatureOf(changed)).toBe("broken");
  });

  test("a signature of macOS is broken by bytes behind it", () => {
    expect(signatureOf(Buffer.concat([signed, new Uint8Array(16)]))).toBe("broken");
  });
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

/** As little of an executable as the checker reads. */
function made(format: Target["format"], machine: number): Uint8Array {
  const bytes = new Uint8Array(10_000).map((_, index) => (index < 4096 ? 0 : index));
  const view = new DataView(bytes.buffer);
  const put = {
    elf() {
      view.setUint32(0, 0x7f454c46);
      view.setUint16(18, machine, true);
      view.setBigUint64(32, 64n, true);
      view.setUint16(54, 56, true);
      view.setUint16(56, 1, true);
      const loader = new TextEncoder().encode("/lib/ld-musl-aarch64.so.1\0");
      view.setUint32(64, 3, true);
      view.setBigUint64(72, 512n, true);
      view.setBigUint64(96, BigInt(loader.length), true);
      bytes.set(loader, 512);
    },
    pe() {
      view.setUint16(0, 0x4d5a);
      view.setUint32(0x3c, 128, true);
      view.setUint32(128, 0x5045_0000);
      view.setUint16(132, machine, true);
    },
    "mach-o"() {
      view.setUint32(0, 0xfeedfacf, true);
      view.setUint32(4, machine, true);
      view.setUint32(16, 3, true);
      for (const [index, name] of ["__TEXT", "__LINKEDIT"].entries()) {
        const at = 32 + index * 72;
        view.setUint32(at, 0x19, true);
        view.setUint32(at + 4, 72, true);
        bytes.set(new TextEncoder().encode(name), at + 8);
      }
      view.setBigUint64(32 + 48, 4096n, true);
      view.setBigUint64(32 + 72 + 40, 8192n, true);
      view.setUint32(176, 0x1d, true);
      view.setUint32(180, 16, true);
      view.setUint32(184, 9_984, true);
      view.setUint32(188, 16, true);
    },
  };
  put[format]();
  return bytes;
}
