/** Scenario: the way to a service, hop by hop: how far one gets, and who is silent. */
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { probeConnection } from "../../../src/lib/net/out/connectivity-probe";
import { declining, startCompany } from "../../support/corporate-proxy";
import { clearProxyVariables } from "../../support/proxy-variables";

clearProxyVariables();

const mute = () => Bun.listen({ port: 0, hostname: "127.0.0.1", socket: { data() {} } });

test("directly: who cannot be reached, who does not begin TLS, who signs", async () => {
  using silent = mute();
  const within = 300;
  expect(await probeConnection(`http://127.0.0.1:${silent.port}/x`, within)).toEqual({
    message: "127.0.0.1 takes connections and does not answer",
  });
  expect(await probeConnection(`https://127.0.0.1:${silent.port}/`, within)).toEqual({
    message: "127.0.0.1 takes connections and does not begin TLS",
  });
  const pem = readFileSync(join(import.meta.dir, "../../support/tls/upstream.pem"), "utf8");
  using shown = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    tls: { key: pem, cert: pem },
    fetch: () => new Response(),
  });
  expect(await probeConnection(`https://127.0.0.1:${shown.port}/`, 2000)).toMatchObject({
    signer: "Example company root (test)",
  });
  silent.stop(true);
  expect(await probeConnection(`https://127.0.0.1:${silent.port}/`, 2000)).toMatchObject({
    message: expect.stringContaining("ECONNREFUSED"),
  });
});

test("through a proxy: before it, at it, in the tunnel, behind it", async () => {
  await using company = await startCompany();
  process.env.HTTPS_PROXY = company.url;
  company.answer = declining("403 Forbidden");
  await probeConnection("https://[2001:db8::1]:8443/", 2000);
  expect(company.asked.splice(0)).toEqual([{ line: "CONNECT [2001:db8::1]:8443 HTTP/1.1", signIn: undefined }]);
  company.answer = declining("407 Proxy Authentication Required");
  expect((await probeConnection("https://github.test/", 2000)).message).toBe(
    `the proxy ${company.url} answers with status 407`,
  );
  company.answer = undefined;
  company.asked.length = 0;
  process.env.HTTPS_PROXY = company.url.replace("//", "//user:secret@");
  const way = (timeoutMs = 2000) => probeConnection("https://github.test/", timeoutMs);
  expect(await way()).toMatchObject({ signer: "Example company root (test)" });
  // The proxy's password is for calls that ask something.
  expect(company.asked).toEqual([{ line: "CONNECT github.test:443 HTTP/1.1", signIn: undefined }]);
  company.answer = declining("407 Proxy Authentication Required");
  expect(await way()).toEqual({ message: `the proxy ${company.url} answers, and what is behind it is silent` });
  company.answer = "silent";
  expect(await way(300)).toEqual({ message: `the proxy ${company.url} takes connections and does not answer` });
  company.answer = "";
  expect(await way()).toMatchObject({ message: expect.stringContaining("it hangs up") });
  company.answer = undefined;
  using silent = mute();
  company.port443 = silent.port;
  expect(await way(300)).toEqual({
    message: `github.test, behind the proxy ${company.url}, takes connections and does not begin TLS`,
  });
  process.env.HTTPS_PROXY = "socks5://user:secret@127.0.0.1:1";
  expect(await way()).toMatchObject({ message: expect.stringContaining("socks5://") });
});
