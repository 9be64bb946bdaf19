/** Scenario: behind a company's proxy: a call that fails says at which hop, and never with the proxy's password. */
import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import type { ProxyError } from "../../../src/lib/errors";
import { describeCause } from "../../../src/lib/logger";
import { singleLimit } from "../../../src/lib/net/out/clock";
import { callOut } from "../../../src/lib/net/out/fetch";
import { companyRoot, declining, startCompany } from "../../support/corporate-proxy";
import { clearProxyVariables } from "../../support/proxy-variables";

clearProxyVariables("NODE_EXTRA_CA_CERTS");

async function failure(url = "https://copilot.test/models", ms = 5000): Promise<ProxyError> {
  const call = { method: "GET" as const, headers: {}, limits: singleLimit(ms), who: "GitHub Copilot" };
  const answered = await callOut(url, call).catch((thrown) => thrown as ProxyError);
  if (!(answered instanceof Error)) throw new Error(`Answered with ${answered.status}`);
  expect(`${answered.message} ${describeCause(answered)}`).not.toMatch(/secret|opensesame/);
  return answered;
}

describe("the hop that failed is named", () => {
  test("the proxy's name does not resolve", async () => {
    process.env.HTTPS_PROXY = "http://secret:opensesame@proxy.invalid:8080";
    const error = await failure();
    expect([error.status, error.message]).toEqual([
      502,
      "GitHub Copilot cannot be reached: the name of the proxy http://proxy.invalid:8080 (HTTPS_PROXY) could not be resolved. Is this machine offline, or outside the company's network?",
    ]);
  });

  test("the proxy refuses the connection", async () => {
    const company = await startCompany();
    await company[Symbol.asyncDispose]();
    process.env.https_proxy = company.url;
    expect((await failure()).message).toBe(
      `GitHub Copilot cannot be reached: the proxy ${company.url} (https_proxy) refused the connection. Is it running, and is that its port?`,
    );
  });

  test.each([
    [
      "407 Proxy Authentication Required",
      "",
      "",
      "wants a user name and a password (status 407). Put them into HTTPS_PROXY, as user:password@127.0.0.1:",
    ],
    [
      "407 Proxy Authentication Required",
      'proxy-authenticate: Basic realm="corp"',
      "secret:opensesame@",
      "did not accept the user name and password in HTTPS_PROXY (status 407)",
    ],
    ["407 Proxy Authentication Required", "proxy-authenticate: NTLM", "", "wants a sign-in other than by password"],
    ["403 Forbidden", "", "", "does not allow copilot.test (status 403). Ask whoever runs it"],
    ["502 Bad Gateway", "", "", "could not reach copilot.test itself (status 502)"],
    ["504 Gateway Timeout", "", "", "could not reach copilot.test itself (status 504)"],
    ["400 Bad Request", "", "", "opened no tunnel to copilot.test (status 400)"],
  ])("the proxy answers %s %s", async (status, header, signIn, said) => {
    await using company = await startCompany();
    company.answer = declining(status, header);
    process.env.HTTPS_PROXY = company.url.replace("//", `//${signIn}`);
    const { message, details } = await failure();
    expect(message).toContain(`GitHub Copilot cannot be reached: the proxy ${company.url} (HTTPS_PROXY) ${said}`);
    expect(details.code).toBe("upstream_unreachable");
    // Wrong passwords are counted by some; what passes may be tried again.
    expect(company.asked.length).toBe(status.startsWith("5") ? 2 : 1);
  });

  test("the proxy takes the call and says nothing", async () => {
    await using company = await startCompany();
    company.answer = "silent";
    process.env.HTTPS_PROXY = company.url;
    expect(await failure(undefined, 300)).toMatchObject({
      status: 504,
      message: `GitHub Copilot did not answer within 0.3 s through the proxy ${company.url} (HTTPS_PROXY): one of the two is silent, and \`dragoman doctor\` says which.`,
    });
  });

  test("the proxy hangs up, or speaks something else", async () => {
    await using company = await startCompany();
    process.env.HTTPS_PROXY = company.url;
    for (const [answer, said] of [
      ["", `the connection through the proxy ${company.url} (HTTPS_PROXY) broke`],
      ["SSH-2.0-OpenSSH_9.6\r\n\r\n", `what came back through the proxy ${company.url} (HTTPS_PROXY) is not HTTP`],
    ] as const) {
      company.answer = answer;
      expect((await failure()).message).toContain(said);
    }
  });

  test("the variable names what no call can go through", async () => {
    process.env.HTTPS_PROXY = "socks5://secret:opensesame@127.0.0.1:1080";
    expect((await failure()).message).toBe(
      "GitHub Copilot cannot be reached: HTTPS_PROXY names a socks5:// proxy, and only http:// and https:// proxies can be used.",
    );
  });
});

describe("behind the proxy, the certificate is judged, and never waved through", () => {
  test("a certificate that a company's own authority signed is refused, and the words say what to do", async () => {
    await using company = await startCompany();
    process.env.HTTPS_PROXY = company.url;
    expect((await failure()).message).toBe(
      `GitHub Copilot has a TLS certificate, seen through the proxy ${company.url} (HTTPS_PROXY), signed by nobody this machine knows. A company's proxy that looks into TLS does that: set NODE_EXTRA_CA_CERTS to a file with the company's root certificate (PEM).`,
    );
    process.env.NODE_EXTRA_CA_CERTS = "/nowhere/root.pem";
    expect((await failure()).message).toContain(
      "NODE_EXTRA_CA_CERTS names /nowhere/root.pem, which does not exist; its certificates are not trusted.",
    );
  });

  test.each([
    ["upstream", "copilot.test", "200 from behind the proxy"],
    [
      "elsewhere",
      "copilot.test",
      "GitHub Copilot has a TLS certificate, seen through the proxy PROXY (HTTPS_PROXY), made out to another name: something else answers in its place.",
    ],
    [
      "expired",
      "copilot.test",
      "GitHub Copilot has a TLS certificate, seen through the proxy PROXY (HTTPS_PROXY), that is out of date. Is this machine's clock right?",
    ],
  ] as const)("with the company's root in NODE_EXTRA_CA_CERTS: %s", async (certificate, host, said) => {
    await using company = await startCompany({ certificate });
    const source = (name: string) => JSON.stringify(join(import.meta.dir, "../../../src/lib/net/out", name));
    const script = `import { readText } from ${source("body.ts")};
      import { singleLimit } from ${source("clock.ts")};
      import { callOut } from ${source("fetch.ts")};
      const call = { method: "GET", headers: {}, limits: singleLimit(5000), who: "GitHub Copilot" };
      console.log(await callOut("https://${host}/", call).then(async (r) => r.status + " " + (await readText(r, 1000)), (e) => e.message));`;
    for (const variable of ["NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE"]) {
      // Read when the first connection is made, so each needs a process of its own.
      const child = Bun.spawn([process.execPath, "--no-env-file", "-e", script], {
        env: { PATH: process.env.PATH, HTTPS_PROXY: company.url, [variable]: companyRoot },
        stdout: "pipe",
      });
      expect((await new Response(child.stdout).text()).trim()).toBe(said.replace("PROXY", company.url));
    }
  });

  test("something that speaks no TLS at all", async () => {
    using plain = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response() });
    await using company = await startCompany();
    company.port443 = plain.port;
    process.env.HTTPS_PROXY = company.url;
    expect((await failure()).message).toContain("the TLS handshake failed behind the proxy");
    expect((await failure(`https://127.0.0.1:${plain.port}/`)).message).toContain("does not speak TLS at that address");
  });
});
