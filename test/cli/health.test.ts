/** Scenario: `dragoman health`, which a container's health check runs. */
import { expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Command, run } from "../support/command";
import { inProcess } from "../support/in-process";
import { until } from "../support/until";

const healthOf = (server: Command, ...args: string[]) =>
  inProcess(["health", ...args], { DRAGOMAN_HOME: join(server.home, "data") });

test("a server is ready, or not because of its config, or not there", async () => {
  await using server = run(["start", "--json", "--port", "0", "--drain", "20"]);
  const { url, version } = await server.ready();
  expect(await healthOf(server)).toEqual({ code: 0, stdout: `dragoman ${version} is ready at ${url}.\n`, stderr: "" });
  expect(JSON.parse((await healthOf(server, "--json")).stdout)).toEqual({ ready: true, url, version });

  writeFileSync(join(server.home, "data/config.json"), "{", { mode: 0o600 });
  let sick = await healthOf(server);
  await until(async () => {
    sick = await healthOf(server);
    return sick.code !== 0;
  }, "the error of the config is found");
  expect(sick).toMatchObject({ code: 1, stderr: expect.stringContaining("its config file has an error") });

  server.process.kill("SIGKILL");
  await server.exited;
  expect(await healthOf(server)).toMatchObject({ code: 1, stderr: expect.stringContaining("No dragoman server") });
  expect(JSON.parse((await healthOf(server, "--json")).stdout)).toEqual({ ready: false, url: null, version: null });
});
