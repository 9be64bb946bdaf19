/** A real `systemd --user` of an ordinary user, with a journal, in a mount namespace of its own. Needs root. */
import { chownSync, existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { program } from "./command";
import { until } from "./until";

/** A user that no system has, another one in each process: the journal and the control groups know a service by its user. */
const uid = 1_000_000 + process.pid;
const group = `/sys/fs/cgroup/user.slice/user-${uid}.slice/user@${uid}.service`;

export interface UserManager extends AsyncDisposable {
  /** The home folder of the user. */
  home: string;
  /** Runs a command as this user. */
  run(command: string[], env?: Record<string, string>): Promise<{ code: number; stdout: string; stderr: string }>;
  /** The same for dragoman. */
  dragoman(args: string[], env?: Record<string, string>): ReturnType<UserManager["run"]>;
}

/** What the booted system would have prepared: /run, the user's folder in it, one hierarchy of control groups, a journal. */
const prepare = `
set -e
mount -t tmpfs tmpfs /run
mkdir -p /run/systemd/system /run/systemd/unit-root /run/user/${uid}
chown ${uid}:${uid} /run/user/${uid} && chmod 700 /run/user/${uid}
# The message bus wants to know its user by name.
cp /etc/passwd /run/passwd && echo "dragoman-test:x:${uid}:${uid}::$1:/bin/sh" >> /run/passwd
mount --bind /run/passwd /etc/passwd
umount -R /sys/fs/cgroup && mount -t cgroup2 none /sys/fs/cgroup
mkdir -p ${group} && echo $$ > ${group}/cgroup.procs && chown -R ${uid}:${uid} ${group}
/lib/systemd/systemd-journald & echo $! > /run/journald.pid
cd /
exec setpriv --reuid ${uid} --regid ${uid} --clear-groups env -i PATH="$PATH" HOME="$1" XDG_RUNTIME_DIR=/run/user/${uid} \\
  SYSTEMD_LOG_TARGET=journal /lib/systemd/systemd --user
`;

export async function startUserManager(): Promise<UserManager> {
  const home = mkdtempSync(join(tmpdir(), "dragoman-systemd-"));
  chownSync(home, uid, uid);
  const manager = Bun.spawn(["unshare", "-m", "--propagation", "private", "sh", "-c", prepare, "sh", home], {
    stdio: ["ignore", "ignore", "pipe"],
  });
  const inside = ["nsenter", "-t", String(manager.pid), "-m", "--"];
  const asUser = ["setpriv", "--reuid", String(uid), "--regid", String(uid), "--clear-groups", "env", "-i"];
  const run: UserManager["run"] = async (command, env = {}) => {
    const variables = { PATH: process.env.PATH ?? "", HOME: home, XDG_RUNTIME_DIR: `/run/user/${uid}`, ...env };
    const assigned = Object.entries(variables).map(([name, value]) => `${name}=${value}`);
    const child = Bun.spawn([...inside, ...asUser, ...assigned, ...command], {
      stdio: ["ignore", "pipe", "pipe"],
      timeout: 60_000,
    });
    const [stdout, stderr, code] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited]);
    return { code, stdout, stderr };
  };
  let journal = 0;
  const stop = async () => {
    await run(["systemctl", "--user", "exit"]);
    await Promise.race([manager.exited, Bun.sleep(3000)]);
    manager.kill("SIGKILL");
    await manager.exited;
    if (journal) process.kill(journal, "SIGKILL");
    removeGroup();
    rmSync(home, { recursive: true, force: true });
  };
  try {
    await until(
      () => existsSync(`/proc/${manager.pid}/root/run/user/${uid}/systemd/private`),
      "the service manager answers",
    );
    journal = Number(readFileSync(`/proc/${manager.pid}/root/run/journald.pid`, "utf8"));
    // In a volatile journal all users share one file.
    Bun.spawnSync([...inside, "chown", "-R", String(uid), "/run/log/journal"]);
  } catch (thrown) {
    await stop();
    throw new Error(`systemd did not start: ${await manager.stderr.text()}`, { cause: thrown });
  }
  return { home, run, dragoman: (args, env) => run([...program, ...args], env), [Symbol.asyncDispose]: stop };
}

/** Other processes of the namespace are gone, so a fresh one is made to reach the groups. */
function removeGroup(): void {
  const slice = group.slice(0, group.lastIndexOf("/"));
  const script = `umount -R /sys/fs/cgroup; mount -t cgroup2 none /sys/fs/cgroup; find ${slice} -depth -type d -exec rmdir {} +; rmdir /sys/fs/cgroup/user.slice`;
  Bun.spawnSync(["unshare", "-m", "--propagation", "private", "sh", "-c", script], {
    stdio: ["ignore", "ignore", "ignore"],
  });
}
