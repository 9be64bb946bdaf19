/** Scenario: a machine that has little to give: few files, a core it shares with others, no IPv6. */
import { expect, test } from "bun:test";
import { connect, type Socket } from "node:net";
import { exampleModels } from "../../../src/proxy/upstream/models/known-models";
import { askChat, type Command, run } from "../../support/command";
import { processorTimeOf, testWith } from "../../support/sandbox";
import { until } from "../../support/until";

const demo = ["start", "--demo", "--json", "--port", "0"];
const post = (url: string, content: string, timeoutMs = 5000) =>
  askChat(url, content, { stream: true, signal: AbortSignal.timeout(timeoutMs) });

testWith(
  "fewFiles",
  "with 256 files it serves until they are used up, says so a few times at most, and recovers when they are free",
  async () => {
    await using command = run(demo, { within: ["prlimit", "--nofile=256:256"] });
    const { url, port } = await command.ready();
    expect(await (await post(url, "Hello")).text()).toEndWith("[DONE]\n\n");
    const lines = command.stderr().split("\n").length;

    const sockets: Socket[] = [];
    for (let each = 0; each < 400; each++) {
      const socket = connect(port, "127.0.0.1");
      socket.on("error", () => {});
      sockets.push(socket);
    }
    await Bun.sleep(500);
    // There may be a file left for it, or none: it is answered or let go, and does not take the process with it.
    await post(url, "Hello", 1000).catch(() => {});
    expect(command.process.exitCode).toBeNull();
    const used = processorTimeOf(command.process.pid);
    await Bun.sleep(500);
    // Whom it cannot let in it does not ask again and again.
    expect(processorTimeOf(command.process.pid) - used).toBeLessThan(0.4);
    for (const socket of sockets) socket.destroy();
    expect(command.stderr().split("\n").length - lines).toBeLessThan(5);

    // They are free once it has seen their ends.
    const served = () =>
      post(url, "Hello").then(
        (each) => each.text(),
        () => "",
      );
    await until(async () => (await served()).endsWith("[DONE]\n\n"), "files are free again");
    const answers = await Promise.all(Array.from({ length: 20 }, () => post(url, "Hello").then((each) => each.text())));
    expect(answers.filter((text) => text.endsWith("[DONE]\n\n"))).toHaveLength(20);
  },
  20_000,
);

testWith(
  "oneCore",
  "on one core that others keep busy it is slower, and cuts nothing off",
  async () => {
    // The last in line there, as its neighbours are: nobody else on this machine is slowed down.
    const last = ["taskset", "-c", "0", "nice", "-n", "19"];
    const neighbours = Array.from({ length: 3 }, () =>
      Bun.spawn([...last, "sh", "-c", "while :; do :; done"], { stdout: "ignore", stderr: "ignore" }),
    );
    try {
      await using command = run(demo, { within: last });
      const { url } = await command.ready();
      const begun = Date.now();
      const texts = await Promise.all(
        Array.from({ length: 40 }, (_, at) =>
          post(url, at % 2 === 0 ? "[demo: long 40] Hello" : "Hello", 30_000).then((response) => response.text()),
        ),
      );
      expect(texts.filter((text) => text.endsWith("data: [DONE]\n\n"))).toHaveLength(40);
      const rows = (await (await fetch(`${url}/api/admin/requests?from_ms=${begun}`)).json()) as {
        items: { http_status: number }[];
      };
      expect(rows.items.map(({ http_status }) => http_status)).toEqual(Array(40).fill(200));
      // One account is limited from the start.
      expect(command.stderr()).not.toMatch(/ (?:warn|error) (?!.*made up for the demo)/);
    } finally {
      for (const neighbour of neighbours) neighbour.kill("SIGKILL");
    }
  },
  60_000,
);

/** What a command in the program's own network says. */
async function beside(command: Command, ...words: string[]): Promise<string> {
  const pid = String(command.process.pid);
  const child = Bun.spawn(["nsenter", "-t", pid, "-U", "-n", "--preserve-credentials", ...words], {
    stdout: "pipe",
    stderr: "ignore",
  });
  return new Response(child.stdout).text();
}

testWith("networks", "where there is no IPv6 it serves over IPv4, without a warning", async () => {
  const script =
    'echo 1 > /proc/sys/net/ipv6/conf/all/disable_ipv6; echo 1 > /proc/sys/net/ipv6/conf/lo/disable_ipv6; ip link set lo up; exec "$@"';
  await using command = run(demo, { within: ["unshare", "-Urn", "sh", "-c", script, "sh"] });
  const { url, port } = await command.ready();
  expect(url).toBe(`http://127.0.0.1:${port}`);
  expect(await beside(command, "ip", "-6", "addr")).toBe("");
  const body = JSON.stringify({
    model: exampleModels.flash,
    stream: true,
    messages: [{ role: "user", content: "Hello" }],
  });
  expect(await beside(command, "curl", "-s", `${url}/v1/chat/completions`, "-d", body)).toEndWith("data: [DONE]\n\n");
  expect(command.stderr()).not.toContain("::1");
});

test.if(process.platform !== "win32")(
  "stopped for longer than the upstream may be silent, its streams end well or in words, and it does not race to catch up",
  async () => {
    await using command = run(demo, { env: { DRAGOMAN_UPSTREAM_TIMEOUT_MS: "1500" } });
    const { url, pid } = await command.ready();
    const begun = await Promise.all(Array.from({ length: 20 }, () => post(url, "[demo: long 60] Hello", 20_000)));
    const streams = begun.map((response) => response.text());
    command.process.kill("SIGSTOP");
    await Bun.sleep(3000);
    const used = processorTimeOf(pid);
    command.process.kill("SIGCONT");
    for (const text of await Promise.all(streams)) {
      expect(text).toMatch(/data: \[DONE\]\n\n$|"error":\{[^\n]*\}\n\n$/);
      expect(text.split(": ").filter((line) => line.startsWith("keep-alive")).length).toBeLessThan(2);
    }
    expect(processorTimeOf(pid) - used).toBeLessThan(1.5);
    expect((await post(url, "Hello")).status).toBe(200);
  },
  30_000,
);
