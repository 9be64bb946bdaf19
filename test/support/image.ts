/** The image as src/deploy/Dockerfile describes it, assembled and run without Docker: in namespaces, as a container would be. */
import {
  chmodSync,
  chownSync,
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join, relative } from "node:path";
import { type Copy, DockerfileParser, type Instruction } from "dockerfile-ast";

export const repository = join(import.meta.dir, "../..");
const folder = join(repository, "src/deploy");
export const dockerfileText = readFileSync(join(folder, "Dockerfile"), "utf8");
export const dockerfile = DockerfileParser.parse(dockerfileText);

interface Stage {
  /** The image it begins with. */
  from: string;
  instructions: Instruction[];
}

/** The stages, in their order. */
export const stages: Stage[] = [];
for (const instruction of dockerfile.getInstructions()) {
  if (instruction.getKeyword() === "FROM")
    stages.push({ from: instruction.getArguments().at(0)!.getValue(), instructions: [] });
  else stages.at(-1)?.instructions.push(instruction);
}
const final = stages.at(-1)!;

/** The arguments of the last instruction of this name in the final stage. */
export const argumentOf = (keyword: string): string =>
  final.instructions.findLast((each) => each.getKeyword() === keyword)?.getArgumentsContent() ?? "";

/** An instruction in its JSON form. */
export const wordsOf = (keyword: string): string[] => JSON.parse(/\[.*\]/.exec(argumentOf(keyword))?.[0] ?? "[]");

export const variablesOfImage = Object.fromEntries(
  final.instructions
    .filter((each) => each.getKeyword() === "ENV")
    .map((each) => each.getArgumentsContent()!.split("=") as [string, string]),
);

const isCopy = (instruction: Instruction): instruction is Copy => instruction.getKeyword() === "COPY";

/** What a COPY says. */
function copyOf(instruction: Copy) {
  const flags = new Map(instruction.getFlags().map((flag) => [flag.getName(), flag.getValue()]));
  const words = instruction
    .getArguments()
    .map((word) => word.getValue())
    .filter((word) => !word.startsWith("--"));
  return { flags, from: words.slice(0, -1), to: words.at(-1)! };
}
export const copiesOf = ({ instructions }: Stage) => instructions.filter(isCopy).map(copyOf);

/** The files that are sent to the builder: `Dockerfile.dockerignore`, in which the last line that fits decides. */
export function contextFiles(): string[] {
  const rows = readFileSync(join(folder, "Dockerfile.dockerignore"), "utf8").trim().split("\n");
  const rules = rows.map((row) => ({ keeps: row.startsWith("!"), glob: row.replace(/^!/, "") }));
  const fits = (path: string, glob: string) => new Bun.Glob(glob).match(path) || new Bun.Glob(`${glob}/**`).match(path);
  const { stdout } = Bun.spawnSync(["git", "ls-files", "--cached", "--others", "--exclude-standard"], {
    cwd: repository,
  });
  return stdout
    .toString()
    .trim()
    .split("\n")
    .filter((path) => existsSync(join(repository, path)))
    .filter((path) => rules.findLast(({ glob }) => fits(path, glob))?.keeps === true);
}

export interface Assembled extends Disposable {
  /** The root file system. */
  root: string;
  /** The files of the build stage's /out. */
  out: string;
}

/**
 * Runs the build stage in a folder that has the context's files and no other, then copies what the final stage asks for onto
 * this machine's C library, which stands for the base image.
 */
export function assemble(): Assembled {
  const scratch = mkdtempSync(join(tmpdir(), "dragoman-image-"));
  const [source, out, root] = ["source", "out", "root"].map((name) => join(scratch, name)) as [string, string, string];
  for (const each of [source, out, root]) mkdirSync(each);
  const build = stages[0]!;
  const files = contextFiles();
  for (const { from, to } of copiesOf(build))
    for (const path of from) {
      const found = files.filter((file) => file === path || file.startsWith(`${path}/`));
      if (found.length === 0) throw new Error(`COPY ${path}: the context does not have it.`);
      // Of a folder, COPY takes what is in it.
      for (const file of found)
        place(join(repository, file), join(source, to, file === path ? basename(path) : relative(path, file)));
    }
  // The packages of the lockfile are installed here already.
  symlinkSync(join(repository, "node_modules"), join(source, "node_modules"));
  for (const instruction of build.instructions.filter((each) => each.getKeyword() === "RUN")) {
    const command = instruction.getArgumentsContent()!;
    if (command.startsWith("bun install ")) continue;
    const { success, stderr } = Bun.spawnSync(["sh", "-c", command.replaceAll("/out/", `${out}/`)], {
      cwd: source,
      env: { PATH: `${dirname(process.execPath)}:${process.env.PATH}`, HOME: scratch, TARGETARCH: "amd64" },
      timeout: 120_000,
    });
    if (!success) throw new Error(`RUN ${command}: ${stderr}`);
  }
  for (const { flags, from, to } of copiesOf(final)) {
    const [path = ""] = from;
    const target = join(root, to);
    mkdirSync(dirname(target), { recursive: true });
    cpSync(flags.get("from") ? path.replace(/^\/out/, out) : join(repository, path), target, { recursive: true });
    const [uid, gid] = (flags.get("chown") ?? "0:0").split(":").map(Number) as [number, number];
    if (process.getuid?.() === 0) chownSync(target, uid, gid);
    if (flags.get("chmod")) chmodSync(target, Number.parseInt(flags.get("chmod")!, 8));
  }
  return { root, out, [Symbol.dispose]: () => rmSync(scratch, { recursive: true, force: true }) };
}

function place(from: string, to: string): void {
  mkdirSync(dirname(to), { recursive: true });
  copyFileSync(from, to);
}

/** What the base image and the container's engine bring: the C library, the names of users, and empty places to mount on. */
export function addBase(root: string): void {
  const program = join(root, wordsOf("ENTRYPOINT")[0]!);
  const libraries = Bun.spawnSync(["ldd", program]).stdout.toString();
  for (const [path] of libraries.matchAll(/\/\S+/g)) place(path, join(root, path));
  for (const name of ["dev", "proc", "etc", "home/nonroot"]) mkdirSync(join(root, name), { recursive: true });
  writeFileSync(join(root, "etc/passwd"), "nonroot:x:65532:65532:nonroot:/home/nonroot:/sbin/nologin\n");
  writeFileSync(join(root, "etc/hosts"), "127.0.0.1 localhost\n");
}

/** Processes, mounts and network of its own; the root file system is read-only, but for the volume. */
const prepare = `
set -e
ip link set lo up
mount --bind "$ROOT" "$ROOT" && mount --bind "$ROOT/data" "$ROOT/data"
mount -t proc proc "$ROOT/proc" && mount -t tmpfs tmpfs "$ROOT/dev"
for name in null zero random urandom; do touch "$ROOT/dev/$name" && mount --bind "/dev/$name" "$ROOT/dev/$name"; done
mount -o remount,bind,ro "$ROOT"
exec setpriv --no-new-privs env -i $VARIABLES "$(command -v chroot)" --userspec="$OWNER" --groups="\${OWNER#*:}" "$ROOT" "$@"
`;

export interface Container extends AsyncDisposable {
  /** The id of its first process, on this machine. */
  pid(): number;
  /** As `docker exec`. */
  exec(command: string[]): { code: number; stdout: string; stderr: string };
  /** curl in its network. @returns The status and the body. */
  curl(...args: string[]): { status: number; body: string };
  kill(signal: "SIGTERM" | "SIGKILL"): void;
  stderr(): string;
  exited: Promise<number>;
}

/** As `docker run --read-only`. @param env More variables; without spaces. @param args In place of the image's CMD. */
export function runImage(root: string, env: Record<string, string> = {}, args = wordsOf("CMD")): Container {
  const owner = argumentOf("USER");
  const variables = { PATH: "/usr/local/bin", HOME: "/home/nonroot", ...variablesOfImage, ...env };
  const assigned = Object.entries(variables).map(([name, value]) => `${name}=${value}`);
  const namespaces = ["unshare", "-mpfn", "--propagation", "private", "--kill-child"];
  const child = Bun.spawn([...namespaces, "sh", "-c", prepare, "sh", ...wordsOf("ENTRYPOINT"), ...args], {
    env: { PATH: process.env.PATH ?? "", ROOT: root, OWNER: owner, VARIABLES: assigned.join(" ") },
    stdio: ["ignore", "ignore", "pipe"],
  });
  let text = "";
  const read = (async () => {
    for await (const chunk of child.stderr.pipeThrough(new TextDecoderStream())) text += chunk;
  })();
  const pid = () => Number(readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, "utf8").trim());
  const [uid, gid] = owner.split(":") as [string, string];
  return {
    pid,
    exec(command) {
      const enter = [Bun.which("nsenter")!, "-t", String(pid()), "-m", "-p", "-n", "-r", "-w", "-S", uid, "-G", gid];
      const done = Bun.spawnSync([...enter, ...command], { env: variables });
      return { code: done.exitCode, stdout: done.stdout.toString(), stderr: done.stderr.toString() };
    },
    curl(...words) {
      const curl = ["nsenter", "-t", String(pid()), "-n", "curl", "-s", "-m", "20", "-w", "\n%{http_code}"];
      const lines = Bun.spawnSync([...curl, ...words])
        .stdout.toString()
        .split("\n");
      return { status: Number(lines.pop()), body: lines.join("\n") };
    },
    kill: (signal) => process.kill(pid(), signal),
    stderr: () => text,
    exited: child.exited.then(async (code) => {
      await read;
      return code;
    }),
    async [Symbol.asyncDispose]() {
      child.kill("SIGKILL");
      await child.exited;
    },
  };
}
