/** Scenario: `dragoman doctor` where somebody on the way to GitHub is silent. */
import { expect, test } from "bun:test";
import type { Finding } from "../../../src/cli/checks/check";
import { scriptedGithub } from "../../cli/bench";
import { startCompany } from "../../support/corporate-proxy";
import { freePort } from "../../support/free-port";
import { inProcess } from "../../support/in-process";
import { took } from "../../support/least";

test("who is silent is found hop by hop, within 11.5 s", async () => {
  await using github = scriptedGithub();
  github.signIn("octo-demo");
  await using company = await startCompany();
  const env = {
    ...github.env,
    DRAGOMAN_GITHUB_URL: "https://github.test",
    DRAGOMAN_GITHUB_API_URL: "https://api.github.test",
    DRAGOMAN_COPILOT_API_URL: "https://copilot.test",
    HTTPS_PROXY: company.url,
  };
  const said = async () => {
    const { stdout } = await inProcess(["doctor", "--json", "--port", String(freePort())], env);
    const { checks } = JSON.parse(stdout) as { checks: Finding[] };
    return checks.find(({ name }) => name === "GitHub")!.message;
  };
  const isSaid = async (text: string) => expect(await said()).toContain(`Step by step: ${text}`);

  company.answer = "silent";
  expect(await took(() => isSaid(`the proxy ${company.url} takes connections and does not answer.`))).toBeLessThan(
    11_500,
  );
  company.answer = undefined;
  using mute = Bun.listen({ port: 0, hostname: "127.0.0.1", socket: { data() {} } });
  company.port443 = mute.port;
  const silent = `github.test, behind the proxy ${company.url}, takes connections and does not begin TLS.`;
  expect(await took(() => isSaid(silent))).toBeLessThan(11_500);
});
