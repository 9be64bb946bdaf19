/** Rows: a file of certificates that cannot be used is said: Bun itself skips it, mostly in silence. */
import { expect, test } from "bun:test";
import { chmodSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { certificateFiles, warnOfCertificateFault } from "../../../src/lib/net/out/ca-certificates";
import { companyRoot } from "../../support/corporate-proxy";
import { testWith } from "../../support/sandbox";
import { temporaryFolder } from "../../support/temporary-folder";

const root = readFileSync(companyRoot, "utf8");
const broken = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";

test.each([
  ["the root alone", root, 1, undefined],
  ["with words around it", `The company's root\n${root}${root}`, 2, undefined],
  ["one that is broken spoils the others", root + broken, 0, "does not read: certificate 2 of 2 is broken"],
  ["one of which a line is missing", root.replace(/^.{64}\n/m, ""), 0, "does not read: certificate 1 of 1 is broken"],
  ["no certificate", "hello\n", 0, "holds no certificate in PEM form (-----BEGIN CERTIFICATE-----)"],
  ["nothing", "", 0, "holds no certificate in PEM form (-----BEGIN CERTIFICATE-----)"],
])("a file of further roots is read as Bun reads it, or its fault is said: %s", async (_, text, count, fault) => {
  const folder = temporaryFolder();
  const path = join(folder, "root.pem");
  writeFileSync(path, text);
  expect(certificateFiles({ NODE_EXTRA_CA_CERTS: path, SSL_CERT_FILE: "" })).toEqual([
    { variable: "NODE_EXTRA_CA_CERTS", path, count, ...(fault ? { fault } : {}) },
  ]);
  // Bun says something of a file exactly when we do.
  const child = Bun.spawn(
    [process.execPath, "--no-env-file", "-e", "await fetch('https://127.0.0.1:1/').catch(() => {})"],
    { env: { PATH: process.env.PATH, NODE_EXTRA_CA_CERTS: path }, stderr: "pipe" },
  );
  expect((await new Response(child.stderr).text()).includes("Ignoring extra certs")).toBe(fault !== undefined);
});

test("a file that is not there, is a folder, or is not ours to read", () => {
  const folder = temporaryFolder();
  const path = join(folder, "root.pem");
  writeFileSync(path, root);
  chmodSync(path, 0o000);
  expect(certificateFiles({ SSL_CERT_FILE: join(folder, "none.pem") }).map(warnOfCertificateFault)).toEqual([
    `SSL_CERT_FILE names ${folder}/none.pem, which does not exist; its certificates are not trusted.`,
  ]);
  expect(certificateFiles({ SSL_CERT_FILE: folder })[0]).toMatchObject({ count: 0, fault: "is a folder" });
  // Root may read everything.
  if (process.getuid?.() !== 0)
    expect(certificateFiles({ SSL_CERT_FILE: path })[0]).toMatchObject({ fault: "may not be read by this account" });
  expect(certificateFiles({})).toEqual([]);
});

/** What a call of a program to a server whose certificate the company's root has signed comes to. */
async function callWith(env: Record<string, string>, ...before: string[]): Promise<string> {
  const pem = readFileSync(join(import.meta.dir, "../../support/tls/upstream.pem"), "utf8");
  const server = Bun.serve({ port: 0, tls: { key: pem, cert: pem }, fetch: () => new Response("trusted") });
  const call = `console.log(await fetch("https://localhost:${server.port}/", { tls: { serverName: "github.test" } }).then((r) => r.text(), (e) => e.code))`;
  const command = [...before, process.execPath, "--no-env-file", "-e", call];
  const child = Bun.spawn(command, { env: { PATH: process.env.PATH, ...env }, stderr: "ignore" });
  const said = await new Response(child.stdout).text();
  await server.stop(true);
  return said.trim();
}

test.each(["NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE"])(
  "the certificates of %s are trusted, and none without",
  async (name) => {
    expect(await callWith({ [name]: companyRoot })).toBe("trusted");
    expect(await callWith({})).toMatch(/CERT|SIGN|ISSUER/);
  },
);

testWith(
  "mounts",
  "NODE_USE_SYSTEM_CA=1 trusts the certificates of the system, which are not trusted without",
  async () => {
    const inSystem = [
      "unshare",
      "-Urm",
      "sh",
      "-c",
      'mount --bind "$0" /etc/ssl/certs/ca-certificates.crt && exec "$@"',
    ];
    expect(await callWith({ NODE_USE_SYSTEM_CA: "1" }, ...inSystem, companyRoot)).toBe("trusted");
    expect(await callWith({}, ...inSystem, companyRoot)).toMatch(/CERT|SIGN|ISSUER/);
  },
);
