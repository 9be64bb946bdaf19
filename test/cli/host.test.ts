/**
 * Scenario: `start --host`: what it announces is an address that answers, and what answers there is not refused by its own
 * gate.
 */
import { expect } from "bun:test";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Command, run } from "../support/command";
import { addresses, startNetworked } from "../support/networks";
import { testWith } from "../support/sandbox";
import { temporaryFolder } from "../support/temporary-folder";
import { usedDemo } from "../support/used-demo";

// Some start programs in networks of their own, on a machine that may be busy.
/** The addresses that a person reads at the start. */
const printed = (text: string) => text.match(/http:\/\/[^\s/,]+/g) ?? [];

testWith(
  "networks",
  "with 0.0.0.0 or :: every announced address answers on this machine, and other machines are served",
  async () => {
    for (const [host, loopback, url] of [
      ["0.0.0.0", "127.0.0.1", "http://127.0.0.1:4141"],
      ["::", "::1", "http://[::1]:4141"],
    ] as const) {
      await using both = await startNetworked(["--host", host, "--allow-open"], { loopback });
      expect(both.ready.url).toBe(url);
      expect(new Set(printed(both.command.stderr()))).toEqual(new Set([url]));
      const note = JSON.parse(readFileSync(join(both.data, "demo/running.json"), "utf8"));
      expect(note.url).toBe(url);
      for (const path of ["/v1/models", "/admin", "/api/admin/meta", "/token"])
        expect([path, (await both.here.fetch(url + path)).status]).toEqual([path, 200]);
      // Whoever types what was asked for is not sent away, and is not the owner by it either.
      const every = `http://${host.includes(":") ? `[${host}]` : host}:4141`;
      expect((await both.here.fetch(`${every}/v1/models`)).status).toBe(200);
      expect((await both.here.fetch(`${every}/api/admin/meta`)).status).toBe(403);

      const away = `http://${addresses.here}:4141`;
      expect((await both.there.fetch(`${away}/v1/models`)).status).toBe(200);
      expect((await both.there.fetch(`${away}/admin`)).status).toBe(403);
      expect(both.command.stderr()).toContain("WARNING");
    }
  },
);

testWith("networks", "a server that other machines reach serves nobody after its last key was removed", async () => {
  const config = (apiKeys: string[]) => JSON.stringify({ auth: { apiKeys } });
  const home = temporaryFolder();
  mkdirSync(join(home, "demo"), { mode: 0o700 });
  writeFileSync(join(home, "demo/config.json"), config(["k-only-0123456789"]), { mode: 0o600 });
  await using served = await startNetworked(["--host", "0.0.0.0"], { env: { DRAGOMAN_HOME: home } });
  const status = async (headers: Record<string, string> = {}) =>
    (await served.there.fetch(`http://${addresses.here}:4141/v1/models`, { headers })).status;
  expect([await status(), await status({ "x-api-key": "k-only-0123456789" })]).toEqual([401, 200]);
  const init = { method: "POST", body: config([]), headers: { "content-type": "application/json" } };
  expect((await served.here.fetch("http://127.0.0.1:4141/api/admin/config", init)).status).toBe(200);
  expect([await status(), await status({ "x-api-key": "k-only-0123456789" })]).toEqual([401, 401]);
});

testWith("networks", "a port that the system refuses is named for what it is, by `start` and by `doctor`", async () => {
  // As root without the right to ports below 5000, which are here what those below 1024 are elsewhere.
  const script =
    'ip link set lo up; echo 5000 > /proc/sys/net/ipv4/ip_unprivileged_port_start; exec setpriv --bounding-set=-net_bind_service "$@"';
  for (const [args, port, why] of [
    [["start", "--demo"], 4141, /The system does not allow port 4141\.\s+(?:→ )?Choose another port/],
    [["doctor"], 80, /Port 80 needs administrator rights\.\s+(?:→ )?Choose a port above 1023/],
  ] as const) {
    const within = ["unshare", "-Urn", "sh", "-c", script, "sh"];
    await using command = run([...args, "--port", String(port)], { within });
    expect([await command.exited, command.stdout() + command.stderr()]).toEqual([1, expect.stringMatching(why)]);
  }
});

/** What curl is answered beside the program, in its network and with its names. */
function ask(command: Command, url: string): string {
  const into = ["nsenter", "-t", String(command.process.pid), "-U", "-n", "-m", "--preserve-credentials"];
  const curl = ["curl", "-s", "-o", "/dev/null", "-w", "%{http_code}", "--max-time", "5", "--noproxy", "*", url];
  return Bun.spawnSync([...into, ...curl]).stdout.toString();
}

/** In a network of its own, where these names are known. */
function runWithNames(names: string, options: string[]): Command {
  const scratch = temporaryFolder();
  writeFileSync(join(scratch, "hosts"), names);
  const script =
    'ip link set lo up && ip addr add 10.77.0.1/24 dev lo && mount --bind "$SCRATCH/hosts" /etc/hosts && exec "$@"';
  return run(["start", "--demo", "--json", "--port", "4141", ...options], {
    env: { SCRATCH: scratch, DRAGOMAN_HOME: usedDemo(join(scratch, "data")) },
    within: ["unshare", "-Urnm", "sh", "-c", script, "sh"],
  });
}

testWith(
  "networks",
  "by a name of 127.0.0.1 it is this machine's own: no key is asked for, no warning, the pages are open",
  async () => {
    await using command = runWithNames("127.0.0.1 localhost mybox ai_box_1\n", ["--host", "MyBox"]);
    const { url } = await command.ready();
    expect(url).toBe("http://mybox:4141");
    expect(new Set(printed(command.stderr()))).toEqual(new Set([url]));
    expect(command.stderr()).not.toContain("WARNING");
    for (const at of [url, "http://127.0.0.1:4141", "http://localhost:4141"])
      for (const path of ["/v1/models", "/admin", "/api/admin/meta", "/token"])
        expect([at, path, ask(command, at + path)]).toEqual([at, path, "200"]);
    expect(ask(command, "http://ai_box_1:4141/v1/models")).toBe("403");
    expect(ask(command, "http://ai_box_1:4141/health")).toBe("200");
  },
);

testWith(
  "networks",
  "by a name that others know it is theirs too: a key is asked for, and its address answers",
  async () => {
    const names = "127.0.0.1 localhost\n10.77.0.1 my_box.lan\n";
    await using open = runWithNames(names, ["--host", "my_box.lan"]);
    expect([await open.exited, open.stderr()]).toEqual([
      2,
      expect.stringContaining("Listening on my_box.lan lets other"),
    ]);

    await using command = runWithNames(names, ["--host", "my_box.lan", "--allow-open"]);
    const { url } = await command.ready();
    expect(url).toBe("http://my_box.lan:4141");
    for (const at of [url, "http://10.77.0.1:4141"]) expect(ask(command, `${at}/v1/models`)).toBe("200");
    // Its own calls do not come from loopback there, and it says so.
    expect(ask(command, `${url}/admin`)).toBe("403");
    expect(command.stderr()).toContain(`${url}/admin, closed: set ADMIN_TOKEN to open it`);
  },
);
