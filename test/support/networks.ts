/** The program in a network of its own, with another machine on a wire to it: no address of this machine is used. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Command, run } from "./command";
import { sendRaw } from "./raw-socket";
import { until } from "./until";
import { usedDemo } from "./used-demo";

/** Where the program's machine is on the wire, and the other one. */
export const addresses = { here: "10.77.0.1", there: "10.77.0.2" };

interface Machine {
  /** As `fetch`, from there. */
  fetch(url: string, init?: RequestInit): Promise<Response>;
  /** The statuses of what comes back there for exactly these bytes, sent to the program's port. */
  raw(text: string): Promise<number[]>;
}

export interface Networked extends AsyncDisposable {
  command: Command;
  /** Its data folder. */
  data: string;
  /** The parsed ready line. */
  ready: Awaited<ReturnType<Command["ready"]>>;
  /** The machine that the program runs on; its calls are to loopback. */
  here: Machine;
  /** The other machine. */
  there: Machine;
}

/** The second network lives as long as the pipe in it, which ends with the program. */
const script = `
set -e
ip link set lo up
"$BUN" "$PIPE" "$SCRATCH/here" "$LOOPBACK" 4141 < /dev/null > /dev/null 2>&1 &
unshare -n sh -c 'echo $$ > "$SCRATCH/pid.new"; mv "$SCRATCH/pid.new" "$SCRATCH/pid"; while [ ! -e "$SCRATCH/wired" ]; do sleep 0.02; done; exec "$BUN" "$PIPE" "$SCRATCH/there" ${addresses.here} 4141 < /dev/null > /dev/null 2>&1' &
while [ ! -e "$SCRATCH/pid" ]; do sleep 0.02; done
other=$(cat "$SCRATCH/pid")
away() { nsenter -t "$other" -n "$@"; }
ip link add here type veth peer name there netns "$other"
ip addr add ${addresses.here}/24 dev here && ip link set here up
away ip addr add ${addresses.there}/24 dev there && away ip link set there up
touch "$SCRATCH/wired"
exec "$@"
`;

interface Options {
  env?: Record<string, string>;
  /** The loopback address that `here` calls. */
  loopback?: string;
}

/** `dragoman start --demo --port 4141` with these options more. Only within `testWith("networks")`. */
export async function startNetworked(options: string[], { env = {}, loopback = "127.0.0.1" }: Options = {}) {
  const scratch = mkdtempSync(join(tmpdir(), "dragoman-"));
  writeFileSync(join(scratch, "script"), script);
  const data = usedDemo(env.DRAGOMAN_HOME ?? join(scratch, "data"));
  const command = run(["start", "--demo", "--json", "--stdin-lifetime", "--port", "4141", ...options], {
    env: {
      ...env,
      DRAGOMAN_HOME: data,
      SCRATCH: scratch,
      BUN: process.execPath,
      PIPE: join(import.meta.dir, "pipe.ts"),
      LOOPBACK: loopback,
    },
    within: ["unshare", "-Urn", "sh", join(scratch, "script")],
  });
  const socket = (name: string) => join(scratch, name);
  const machine = (name: string): Machine => ({
    fetch: (url, init) => fetch(url, { ...init, unix: socket(name) }),
    raw: async (text) => (await sendRaw("http://localhost:4141", text, { path: socket(name) })).statuses,
  });
  const networked: Networked = {
    command,
    data,
    ready: await command.ready(),
    here: machine("here"),
    there: machine("there"),
    async [Symbol.asyncDispose]() {
      await command[Symbol.asyncDispose]();
      rmSync(scratch, { recursive: true, force: true });
    },
  };
  const isThere = (name: string) => Bun.spawnSync(["test", "-S", socket(name)]).success;
  await until(() => isThere("here") && isThere("there"), "both networks are there");
  return networked;
}
