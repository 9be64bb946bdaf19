/** Scenario: who is near, and still somebody else: another user of this machine, another network on it. */
import { expect } from "bun:test";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { exampleModels } from "../../../src/proxy/upstream/models/known-models";
import { program, run } from "../../support/command";
import { testWith } from "../../support/sandbox";

const demo = ["start", "--demo", "--json"];

testWith(
  "users",
  "with --admin-auth=always another user of this machine gets neither the admin API nor the token",
  async () => {
    await using command = run([...demo, "--port", "0", "--admin-auth=always"], {
      env: { ADMIN_TOKEN: "t-admin-0123456789" },
    });
    const { url } = await command.ready();
    const asNobody = (path: string, ...more: string[]) => {
      const curl = ["curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", ...more, url + path];
      return Bun.spawnSync(["setpriv", "--reuid=65534", "--clear-groups", ...curl]).stdout.toString();
    };
    expect(asNobody("/api/admin/meta")).toBe("401");
    expect(asNobody("/api/admin/requests")).toBe("401");
    expect(asNobody("/token")).toBe("403");
    const body = JSON.stringify({ model: exampleModels.flash, messages: [{ role: "user", content: "Hello" }] });
    expect(asNobody("/v1/chat/completions", "-H", "content-type: application/json", "-d", body)).toBe("200");
    expect(asNobody("/api/admin/meta", "-H", "x-admin-token: t-admin-0123456789")).toBe("200");
  },
);

/**
 * Two networks with a wire between them, and the program in the first. The script's words are the program's; its last
 * lines are what somebody in the second network was answered.
 */
const script = `
ip link set lo up
unshare -n sh -c 'echo $$ > "$0/pid"; while [ ! -e "$0/over" ]; do sleep 0.05; done' "$SCRATCH" &
while [ ! -s "$SCRATCH/pid" ]; do sleep 0.05; done
other=$(cat "$SCRATCH/pid")
ip link add here type veth peer name there netns "$other"
ip addr add 10.77.0.1/24 dev here && ip link set here up
away() { nsenter -t "$other" -n "$@"; }
away ip addr add 10.77.0.2/24 dev there
away ip link set there up
"$@" > "$SCRATCH/out" &
server=$!
for turn in $(seq 200); do [ -s "$SCRATCH/out" ] && break; sleep 0.05; done
ask() { away curl -s -o /dev/null -w '%{http_code}\\n' "$@"; }
at=http://10.77.0.1:4141
ask -H 'Host: localhost:4141' $at/api/admin/meta
ask -H 'Host: 127.0.0.1:4141' $at/api/admin/config
ask -H 'Host: localhost:4141' $at/token
ask $at/api/admin/meta
ask -H 'Host: localhost:4141' -H 'X-Forwarded-For: 127.0.0.1' $at/api/admin/meta
ask $at/health
curl -s -o /dev/null -w '%{http_code}\\n' http://127.0.0.1:4141/api/admin/meta
kill -9 $server
touch "$SCRATCH/over"
`;

testWith(
  "networks",
  "over a bridge from another network nobody is at home, whatever Host he names",
  async () => {
    const scratch = mkdtempSync(join(tmpdir(), "dragoman-"));
    try {
      writeFileSync(join(scratch, "script"), script);
      const words = [...program, ...demo, "--port", "4141", "--host", "0.0.0.0", "--allow-open"];
      const child = Bun.spawn(["unshare", "-Urn", "sh", join(scratch, "script"), ...words], {
        env: { PATH: process.env.PATH ?? "", HOME: scratch, DRAGOMAN_HOME: join(scratch, "data"), SCRATCH: scratch },
        stdout: "pipe",
        stderr: "ignore",
        timeout: 20_000,
      });
      const answers = (await new Response(child.stdout).text()).trim().split("\n");
      expect(answers).toEqual(["403", "403", "403", "403", "403", "200", "200"]);
    } finally {
      rmSync(scratch, { recursive: true, force: true });
    }
  },
  30_000,
);
