/** Other proxies, from npm, as columns of the same run. They are installed anew for each run, outside of the project. */
import { rmSync } from "node:fs";
import { join } from "node:path";
import type { Dialect } from "./dialects";
import { newFolder, type Running, type Started, startProxy } from "./processes";

export interface Peer extends Started {
  /** Whether it translates, or passes on, between these. */
  serves(client: Dialect, upstream: Dialect): boolean;
}

interface PublishedProxy {
  package: string;
  version: string;
  program: string;
  /** What is written down in the program in place of our upstream. */
  addresses?: RegExp;
  words(port: number): string[];
  headers?(upstream: Running): Record<string, string>;
  pairs: [client: Dialect, upstream: Dialect][];
}

const published: Record<string, PublishedProxy> = {
  "copilot-api": {
    package: "copilot-api",
    version: "0.7.0",
    program: "dist/main.js",
    addresses: /https:\/\/(?:api\.githubcopilot\.com|api\.github\.com|aur\.archlinux\.org)/g,
    words: (port) => ["start", "--port", String(port), "--github-token", "ghu_0123456789abcdefghij"],
    pairs: [
      ["chat", "chat"],
      ["messages", "chat"],
    ],
  },
  // A gateway for every vendor: each request names its own, and where it is. It does not make messages of chat.
  portkey: {
    package: "@portkey-ai/gateway",
    version: "1.15.2",
    program: "build/start-server.js",
    words: (port) => [`--port=${port}`, "--headless"],
    headers: ({ url }) => ({
      authorization: "Bearer bench",
      "x-portkey-provider": "openai",
      "x-portkey-custom-host": url,
    }),
    pairs: [
      ["chat", "chat"],
      ["responses", "responses"],
    ],
  },
};

/** Milliseconds. */
const installWithin = 60_000;

interface InstalledPeers {
  /** The command of each, and the pairs it serves. */
  start(upstream: Running): Promise<Record<string, Peer>>;
  remove(): void;
}

/** Installs all peers; one that npm does not give, or that does not start, is left out, and `say` is told why. */
export async function installPeers(upstream: Running, say: (text: string) => void): Promise<InstalledPeers> {
  const folder = newFolder();
  const installed: [string, PublishedProxy, string][] = [];
  for (const [name, peer] of Object.entries(published)) {
    const fault = await install(folder, peer);
    if (fault === undefined) installed.push([name, peer, await redirected(folder, peer, upstream)]);
    else say(`${name} is left out: ${fault}`);
  }
  return {
    async start(upstream) {
      const started: Record<string, Peer> = {};
      // One after the other: the time of each start is a figure.
      for (const [name, { words, headers, pairs }, file] of installed)
        try {
          const running = await startProxy((port) => [process.execPath, file, ...words(port)], upstream);
          const serves = (client: Dialect, served: Dialect) => pairs.some(([a, b]) => a === client && b === served);
          started[name] = { ...running, headers: headers?.(upstream) ?? {}, serves };
        } catch (error) {
          say(`${name} is left out: ${String(error)}`);
        }
      return started;
    },
    remove: () => rmSync(folder, { recursive: true, force: true }),
  };
}

/** @returns Why it could not be installed. */
async function install(folder: string, { package: name, version }: PublishedProxy): Promise<string | undefined> {
  const npm = Bun.which("npm");
  if (!npm) return "there is no npm here.";
  const options = ["--prefix", folder, "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"];
  const child = Bun.spawn([npm, "install", ...options, `${name}@${version}`], {
    cwd: folder,
    stdin: "ignore",
    stdout: "ignore",
    stderr: "pipe",
    timeout: installWithin,
  });
  const said = await child.stderr.text();
  if ((await child.exited) === 0) return undefined;
  return `npm could not install it (${said.trim().split("\n")[0] || "no answer in a minute"}).`;
}

/** Its program, with our upstream in place of its addresses. @returns The file. */
async function redirected(folder: string, peer: PublishedProxy, upstream: Running): Promise<string> {
  const file = join(folder, "node_modules", peer.package, peer.program);
  if (!peer.addresses) return file;
  const text = await Bun.file(file).text();
  const changed = text.replaceAll(peer.addresses, upstream.url);
  if (changed === text) throw new Error(`${peer.package} ${peer.version} has none of the addresses that are replaced.`);
  await Bun.write(file, changed);
  return file;
}
