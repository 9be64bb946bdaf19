/**
 * Scenario: the program in a company's network: what it says at start, and that all it asks of GitHub takes the
 * company's way.
 */
import { expect, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Command, run } from "../support/command";
import { companyRoot, proxyCertificate, startCompany } from "../support/corporate-proxy";
import { until } from "../support/until";
import { ask, scriptedGithub } from "./bench";

// Each test starts programs, on a machine that may be busy.
const fromTest = {
  DRAGOMAN_GITHUB_URL: "https://github.test",
  DRAGOMAN_GITHUB_API_URL: "https://api.github.test",
  DRAGOMAN_COPILOT_API_URL: "https://copilot.test",
};
/** The line of the log, once the log has all that a start says. */
async function proxyLine(command: Command): Promise<string | undefined> {
  await until(() => command.stderr().includes(" Data: "), "the log has the first lines");
  return command
    .stderr()
    .split("\n")
    .find((line) => line.includes("Proxy: "));
}

test("the proxy is named, with the variable it comes from and what goes without it, never the password", async () => {
  await using command = run(["start", "--port", "0", "--json"], {
    env: { HTTPS_PROXY: "http://someone:opensesame@proxy.corp:8080", no_proxy: ".corp,10.0.0.0/8" },
  });
  await command.ready();
  expect(await proxyLine(command)).toEndWith(
    " Proxy: http://proxy.corp:8080 (HTTPS_PROXY), not for: this machine, .corp, 10.0.0.0/8",
  );
  expect(command.stderr()).not.toMatch(/opensesame|someone/);
});

test("no line where nothing is in the way: a proxy that is not for GitHub, the demo", async () => {
  for (const [args, env] of [
    [[], { HTTPS_PROXY: "http://proxy.corp:8080", NO_PROXY: "github.com" }],
    [["--demo"], { HTTPS_PROXY: "http://proxy.corp:8080" }],
  ] as const) {
    await using command = run(["start", "--port", "0", "--json", ...args], { env });
    await command.ready();
    expect(await proxyLine(command)).toBe(undefined);
  }
});

test("a proxy that cannot be used, and a CA file that is not there, are said", async () => {
  await using command = run(["start", "--port", "0", "--json"], {
    env: { ALL_PROXY: "", HTTPS_PROXY: "socks5://proxy.corp:1080", NODE_EXTRA_CA_CERTS: "/nowhere/root.pem" },
  });
  await command.ready();
  expect(await proxyLine(command)).toContain("HTTPS_PROXY names a socks5:// proxy");
  expect(command.stderr()).toContain(" CA file: NODE_EXTRA_CA_CERTS names /nowhere/root.pem, which does not exist");
});

test.each([false, true])(
  "token, quota and models all come through the proxy, whose certificates the CA file vouches for (https: %p)",
  async (isSecure) => {
    await using github = scriptedGithub();
    github.signIn("octo-demo");
    await using company = await startCompany({
      isSecure,
      serve(request) {
        const { pathname, search } = new URL(request.url);
        return fetch(github.demo.url + pathname + search, {
          method: request.method,
          headers: request.headers,
          body: request.body,
        });
      },
    });
    const roots = join(github.home, "roots.pem");
    writeFileSync(roots, readFileSync(companyRoot, "utf8") + (isSecure ? readFileSync(proxyCertificate, "utf8") : ""));
    const env = {
      ...github.env,
      ...fromTest,
      HTTPS_PROXY: company.url.replace("//", "//user:p%40ss@"),
      NODE_EXTRA_CA_CERTS: roots,
    };
    await using command = run(["start", "--port", "0", "--json"], { env });
    const { url } = await command.ready();
    expect((await fetch(`${url}/v1/models`)).status).toBe(200);
    expect((await ask(url, "Hello", { model: "gpt-5-mini" })).status).toBe(200);
    // What the answer says beside is rounded: 72.4 % of 300.
    expect(await fetch(`${url}/usage`).then((r) => r.text())).toContain('"remaining":217.');
    expect(new Set(company.asked.map(({ line }) => line))).toEqual(
      new Set(["CONNECT api.github.test:443 HTTP/1.1", "CONNECT copilot.test:443 HTTP/1.1"]),
    );
    for (const { signIn } of company.asked) expect(signIn).toBe(`Basic ${btoa("user:p@ss")}`);
  },
);

test("a proxy that declines is named to the client, without its password", async () => {
  await using github = scriptedGithub();
  github.signIn("octo-demo");
  await using company = await startCompany();
  company.answer = "HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n";
  await using command = run(["start", "--port", "0", "--json"], {
    env: { ...github.env, ...fromTest, HTTPS_PROXY: company.url.replace("//", "//user:opensesame@") },
  });
  const { url } = await command.ready();
  const answer = await ask(url);
  const text = await answer.text();
  expect(answer.status).toBe(503);
  expect(text).toContain(`the proxy ${company.url} (HTTPS_PROXY) did not accept the user name and password`);
  expect(text + command.stderr()).not.toContain("opensesame");
});
