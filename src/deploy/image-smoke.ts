/** Runs an image in Docker as compose.yaml does, until it is healthy, asks it something and stops it: `image-smoke.ts <image>`. */
import assert from "node:assert/strict";
import { exampleModels } from "../proxy/upstream/models/known-models";

const [image] = process.argv.slice(2);
assert.ok(image, "Which image?");
const name = `dragoman-smoke-${process.pid}`;

function docker(...args: string[]): { code: number; out: string } {
  const { exitCode, stdout, stderr } = Bun.spawnSync(["docker", ...args], { timeout: 60_000 });
  return { code: exitCode, out: `${stdout}${stderr}`.trim() };
}

const refused = docker("run", "--rm", image);
assert.equal(refused.code, 2, refused.out);
assert.match(refused.out, /no client key is configured/);

const limits = ["--read-only", "--cap-drop=ALL", "--security-opt=no-new-privileges:true", "--volume", `${name}:/data`];
const started = docker(
  ...["run", "--detach", "--name", name, "--publish", "127.0.0.1::4141", "--health-interval=1s", ...limits],
  ...["--env", "DRAGOMAN_API_KEY=key-of-the-smoke-test", "--env", "ADMIN_TOKEN=token-of-the-smoke-test"],
  ...[image, "start", "--host", "0.0.0.0", "--demo"],
);
try {
  assert.equal(started.code, 0, started.out);
  const health = () => docker("inspect", "--format", "{{.State.Health.Status}}", name).out;
  for (const deadline = Date.now() + 60_000; health() !== "healthy"; await Bun.sleep(500))
    assert.ok(Date.now() < deadline, `It is ${health()}: ${docker("logs", name).out}`);
  const [port] = docker("port", name, "4141/tcp")
    .out.split("\n")
    .map((line) => line.split(":").at(-1));
  const url = `http://127.0.0.1:${port}`;
  assert.equal((await fetch(`${url}/v1/models`)).status, 401);
  const headers = { "x-api-key": "key-of-the-smoke-test" };
  const messages = [{ role: "user", content: "Hello! Who are you?" }];
  const body = JSON.stringify({ model: exampleModels.claude, max_tokens: 100, messages });
  assert.match(await (await fetch(`${url}/v1/messages`, { method: "POST", headers, body })).text(), /DEMO/);
  // The port is published, so its callers are not on the container's loopback.
  assert.notEqual((await fetch(`${url}/api/admin/meta`)).status, 200);
  const admin = { "x-admin-token": "token-of-the-smoke-test" };
  assert.equal((await fetch(`${url}/api/admin/meta`, { headers: admin })).status, 200);
  assert.equal(docker("stop", "--time", "40", name).code, 0);
  assert.equal(docker("inspect", "--format", "{{.State.ExitCode}}", name).out, "0");
  console.log(`${image}: ok`);
} finally {
  docker("rm", "--force", "--volumes", name);
  docker("volume", "rm", name);
}
