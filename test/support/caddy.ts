/** Caddy with the Caddyfile of a team, before servers on loopback. */
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { freePort } from "./free-port";
import { repository } from "./image";
import { patienceMs } from "./until";

export interface Caddy extends AsyncDisposable {
  /** `https://localhost:…` */
  url: string;
  /** For `fetch` and `WebSocket`: who vouches for its certificate. */
  tls: { ca: string };
}

/**
 * Only within `describeWith("caddy")`.
 * @param ports Of two servers.
 * @param options.probeEvery How often Caddy asks them whether they are ready, so that a test need not wait.
 */
export async function startCaddy(
  [one, other]: readonly [number, number],
  { probeEvery = "2s" }: { probeEvery?: string } = {},
): Promise<Caddy> {
  const home = mkdtempSync(join(tmpdir(), "dragoman-caddy-"));
  const port = freePort();
  const text = readFileSync(join(repository, "src/deploy/team/Caddyfile"), "utf8");
  const addressed = text.replace("health_interval 2s", `health_interval ${probeEvery}`);
  // An authority of its own in place of Let's Encrypt, and no port that only root may open.
  const options = `{\n\tadmin off\n\tskip_install_trust\n\tlocal_certs\n\tauto_https disable_redirects\n\tstorage file_system ${home}/storage\n}\n`;
  const file = join(home, "Caddyfile");
  writeFileSync(file, options + addressed);
  const url = `https://localhost:${port}`;
  const log = join(home, "log");
  const child = Bun.spawn(["caddy", "run", "--config", file, "--adapter", "caddyfile"], {
    env: {
      ...{ PATH: process.env.PATH, HOME: home },
      ...{ TEAM_HOST: `localhost:${port}`, SERVERS: `127.0.0.1:${one} 127.0.0.1:${other}` },
    },
    stdout: "ignore",
    stderr: Bun.file(log),
  });
  const authority = join(home, "storage/pki/authorities/local/root.crt");
  const deadline = performance.now() + patienceMs;
  const answers = async () =>
    existsSync(authority) &&
    (await fetch(url, { tls: { ca: readFileSync(authority, "utf8") } }).catch(() => undefined));
  while (!(await answers())) {
    if (child.exitCode !== null || performance.now() > deadline)
      throw new Error(`Caddy does not start: ${readFileSync(log, "utf8")}`);
    await Bun.sleep(30);
  }
  return {
    url,
    tls: { ca: readFileSync(authority, "utf8") },
    async [Symbol.asyncDispose]() {
      child.kill("SIGKILL");
      await child.exited;
      rmSync(home, { recursive: true, force: true });
    },
  };
}
