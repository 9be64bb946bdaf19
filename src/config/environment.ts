import { homedir } from "node:os";
import { join, posix, win32 } from "node:path";
import { ProxyError } from "../lib/errors";
import { isLoopbackName } from "../lib/host-name";
import { withoutEnd } from "../lib/without-end";
import { inHome } from "./home-names";

interface Variable {
  /** The documented name, then its accepted aliases. */
  names: readonly [string, ...string[]];
  kind: keyof typeof readers;
  description: string;
}

/** Every environment variable we read, by its name in `Environment`; the table in config/README.md is generated from this. Blank means unset. */
export const variables = {
  home: {
    names: ["DRAGOMAN_HOME"],
    kind: "text",
    description: "The data folder; ~/.local/share/dragoman when unset.",
  },
  adminToken: {
    names: ["ADMIN_TOKEN"],
    kind: "secret",
    description: "Token for the admin pages and API from another machine; closed to others when unset.",
  },
  metricsToken: {
    names: ["DRAGOMAN_METRICS_TOKEN"],
    kind: "secret",
    description: "Token that reads /metrics from another machine, and nothing else; ADMIN_TOKEN reads it too.",
  },
  clientKey: {
    names: ["DRAGOMAN_API_KEY", "PROXY_API_KEY"],
    kind: "secret",
    description: "The key a client must send; non-empty auth.apiKeys in the config replace it.",
  },
  oauthApp: {
    names: ["DRAGOMAN_OAUTH_APP", "PROXY_API_OAUTH_APP"],
    kind: "app",
    description: "Sign-in app for auth: vscode, opencode, or a client id of your own.",
  },
  oauthSecret: {
    names: ["DRAGOMAN_OAUTH_SECRET"],
    kind: "secret",
    description:
      "The client secret of that app, if it is your own: members sign in to the pages with GitHub then. Its callback is /admin/github/done.",
  },
  enterpriseHost: {
    names: ["DRAGOMAN_ENTERPRISE_URL", "PROXY_API_ENTERPRISE_URL"],
    kind: "host",
    description: "Host name of an enterprise's own GitHub, such as company.ghe.com.",
  },
  anthropicApiKey: {
    names: ["ANTHROPIC_API_KEY", "VENDORX_API_KEY"],
    kind: "secret",
    description: "Key for exact token counts; used when the config has no anthropicApiKey.",
  },
  githubToken: {
    names: ["DRAGOMAN_GITHUB_TOKEN"],
    kind: "token",
    description:
      "A GitHub token that serves as a temporary account, such as that of a job of GitHub Actions; it is never saved.",
  },
  appId: {
    names: ["DRAGOMAN_APP_ID"],
    kind: "app",
    description: "The App ID or client id of a GitHub App that serves as a temporary account; it is never saved.",
  },
  appInstallation: {
    names: ["DRAGOMAN_APP_INSTALLATION"],
    kind: "id",
    description: "The number of that App's installation in the organization that pays.",
  },
  appRepository: {
    names: ["DRAGOMAN_APP_REPOSITORY"],
    kind: "id",
    description: "The number of any repository there; only for an App with the older repository permission.",
  },
  appKey: {
    names: ["DRAGOMAN_APP_KEY"],
    kind: "privateKey",
    description: "The App's private key, in PEM; its line ends may be written as \\n.",
  },
  billingToken: {
    names: ["DRAGOMAN_BILLING_TOKEN"],
    kind: "token",
    description: "A GitHub token that may read your plan, for `usage reconcile`; it is never saved.",
  },
  githubUrl: {
    names: ["DRAGOMAN_GITHUB_URL"],
    kind: "url",
    description: "Where people sign in; https://github.com or the enterprise's host when unset.",
  },
  githubApiUrl: {
    names: ["DRAGOMAN_GITHUB_API_URL"],
    kind: "url",
    description: "GitHub's API; https://api.github.com or the enterprise's when unset.",
  },
  copilotApiUrl: {
    names: ["DRAGOMAN_COPILOT_API_URL"],
    kind: "url",
    description: "The Copilot API; the address in the account's token when unset.",
  },
  anthropicApiUrl: {
    names: ["DRAGOMAN_ANTHROPIC_API_URL"],
    kind: "url",
    description: "The exact token counter; https://api.anthropic.com when unset.",
  },
  databaseUrl: {
    names: ["DRAGOMAN_DATABASE_URL"],
    kind: "database",
    description:
      "A Postgres database (15 or newer) that keeps everything, for several servers; the data folder when unset.",
  },
  databaseDirectUrl: {
    names: ["DRAGOMAN_DATABASE_DIRECT_URL"],
    kind: "database",
    description: "The same database without the connection pooler (PgBouncer) that DRAGOMAN_DATABASE_URL leads to.",
  },
  databaseGraceMs: {
    names: ["DRAGOMAN_DATABASE_GRACE"],
    kind: "seconds",
    description: "How many seconds requests are served while the database cannot be reached; 30 when unset.",
  },
  sealKey: {
    names: ["DRAGOMAN_SEAL_KEY"],
    kind: "sealKey",
    description:
      "Seals the tokens in Postgres, and those of members in the data folder, where a file `seal.key` is made when unset: 32 random bytes as base64, such as `openssl rand -base64 32` prints.",
  },
  sealKeyNext: {
    names: ["DRAGOMAN_SEAL_KEY_NEXT"],
    kind: "sealKey",
    description: "The key to change to with `dragoman database reseal`.",
  },
  releasesUrl: {
    names: ["DRAGOMAN_RELEASES_URL"],
    kind: "url",
    description: "Where releases are looked up, in the form of GitHub's API; that of the project when unset.",
  },
  upstreamTimeoutMs: {
    names: ["DRAGOMAN_UPSTREAM_TIMEOUT_MS"],
    kind: "milliseconds",
    description: "How long an upstream may be silent, in milliseconds; shortens our own limits, for tests.",
  },
} as const satisfies Record<string, Variable>;

type Values = {
  readonly [Key in keyof typeof variables]?: ReturnType<(typeof readers)[(typeof variables)[Key]["kind"]]>;
};

/** The validated environment; a variable that is unset or blank is absent. Addresses have no trailing slash. */
export interface Environment extends Values {
  /** The data folder as a full path; it contains the paths below. Nothing is created here. */
  readonly home: string;
  readonly configFile: string;
  readonly accountsFolder: string;
  readonly historyFile: string;
}

/**
 * Reads every variable once. Throws `invalid_request` with a sentence that names the variable, never its value.
 * `platform` decides the form of paths and which variable holds the home folder.
 */
export function readEnvironment(
  env: Record<string, string | undefined>,
  platform: NodeJS.Platform = process.platform,
): Environment {
  const values = Object.fromEntries(
    Object.entries<Variable>(variables).map(([key, variable]) => [key, readVariable(env, variable)]),
  ) as Values;
  const { join: inside } = platform === "win32" ? win32 : posix;
  return { ...values, ...pathsIn(dataFolder(env, platform, values.home), inside) };
}

/** Kinds of variables whose whole value is a secret. */
export const secretKinds: ReadonlySet<string> = new Set(["secret", "token", "sealKey", "privateKey"]);

/** What must not be logged, in each form that it may have in a text. */
export function secretsOfEnvironment(environment: Environment): string[] {
  const all = Object.entries(variables).flatMap(([name, { kind }]): string[] => {
    const value = environment[name as keyof typeof variables];
    if (Buffer.isBuffer(value)) return [value.toString("base64").replace("=", ""), value.toString("base64url")];
    if (typeof value !== "string") return [];
    if (kind !== "database") return secretKinds.has(kind) ? [value] : [];
    // In an address it may be percent-encoded.
    const { password } = new URL(value);
    return [password, password.replace(/(?:%[\da-f]{2})+/gi, (bytes) => unescaped(bytes))];
  });
  return [...new Set(all)].filter((secret) => secret !== "");
}

const unescaped = (bytes: string) => Buffer.from(bytes.replaceAll("%", ""), "hex").toString();

/** The database without credentials: `postgres://host:5432/name`. */
export function databaseName(url: string): string {
  const { host, pathname } = new URL(url);
  return `postgres://${host}${pathname}`;
}

/** The demo has a data folder of its own, so that its data does not mix with the real one; so has that of a team. */
export const demoEnvironment = (environment: Environment, isTeam: boolean): Environment => ({
  ...environment,
  databaseUrl: undefined,
  ...pathsIn(inHome(environment.home, isTeam ? "demoTeam" : "demo"), join),
});

/** Where a running demo may be found. */
export const demoEnvironments = (environment: Environment): Environment[] =>
  [false, true].map((isTeam) => demoEnvironment(environment, isTeam));

const pathsIn = (home: string, inside: typeof join) => ({
  home,
  configFile: inHome(home, "config", inside),
  accountsFolder: inHome(home, "accounts", inside),
  historyFile: inHome(home, "history", inside),
});

function readVariable(env: Record<string, string | undefined>, { names, kind }: Variable) {
  const [first, ...others] = names.filter((name) => env[name]?.trim());
  if (first === undefined) return undefined;
  const value = env[first]!.trim();
  const other = others.find((name) => env[name]!.trim() !== value);
  if (other)
    refuse(`${first} and ${other} are two names of one setting, but have different values; unset one of them.`);
  return readers[kind](first, value);
}

/** What each kind of variable accepts. */
const readers = {
  text: (_name: string, value: string) => value,
  secret: (name: string, value: string) =>
    /^[ -~]+$/.test(value) ? value : refuse(`${name} must be printable ASCII characters.`),
  token: (name: string, value: string) =>
    /^[!-~]+$/.test(value) ? value : refuse(`${name} must be printable ASCII characters without spaces.`),
  app: (name: string, value: string) =>
    /^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$/.test(value)
      ? value
      : refuse(`${name} must be vscode, opencode or a client id of letters, digits, dots and dashes.`),
  id: (name: string, value: string) =>
    /^\d{1,20}$/.test(value) ? value : refuse(`${name} must be a number, as GitHub's page shows it.`),
  privateKey: (name: string, value: string) =>
    /^-----BEGIN [\s\S]+-----END [^-]+-----$/.test(value)
      ? value
      : refuse(`${name} must be the text of the .pem file, from -----BEGIN to -----END.`),
  host: checkEnterpriseHost,
  url: checkUpstreamUrl,
  database: (name: string, value: string) =>
    /^postgres(?:ql)?:$/.test(URL.parse(value)?.protocol ?? "")
      ? value
      : refuse(`${name} must be the address of a Postgres database: postgres://user:password@host:5432/name.`),
  sealKey: checkSealKey,
  seconds: (name: string, value: string) =>
    /^\d{1,6}$/.test(value) ? Number(value) * 1_000 : refuse(`${name} must be a whole number of seconds.`),
  milliseconds: (name: string, value: string) =>
    /^0*[1-9]\d{0,8}$/.test(value) ? Number(value) : refuse(`${name} must be a whole number of milliseconds above 0.`),
};

/** The bytes of a key that seals. `name`: the variable or file, for the error. */
export function checkSealKey(name: string, value: string): Buffer {
  const key = Buffer.from(value, "base64");
  if (key.length === 32 && /^[A-Za-z0-9+/_-]{43}=?$/.test(value)) return key;
  return refuse(`${name} must be 32 bytes as base64, such as \`openssl rand -base64 32\` prints.`);
}

/** A bare public host name, in lower case. `name`: the variable or option, for the error. */
export function checkEnterpriseHost(name: string, value: string): string {
  const host = value.toLowerCase();
  const label = "[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?";
  // A last label with a letter in it rules out IPv4 addresses; the rest of the shape rules out IPv6 and single names.
  const bare = new RegExp(`^(?:${label}\\.)+(?=[^.]*[a-z])${label}$`);
  if (host.length <= 253 && bare.test(host) && !host.endsWith(".localhost")) return host;
  refuse(`${name} must be a bare public host name, such as company.ghe.com, without https://, port or path.`);
}

/** The address of an upstream, without slashes at its end: https, or http for this machine only. `name`: as above. */
export function checkUpstreamUrl(name: string, value: string): string {
  // URL drops tabs and reads \ as /; such text is refused before parsing.
  const url = /^https?:\/\/[^\s\\?#@]+$/i.test(value) ? URL.parse(value) : null;
  if (!url) refuse(`${name} must be an https:// address without user name, query or fragment.`);
  if (url.protocol === "http:" && !isLoopbackName(url.hostname))
    refuse(
      `${name} must begin with https://; http:// is accepted for this machine only (localhost, 127.0.0.1, [::1]).`,
    );
  return withoutEnd(`${url.origin}${url.pathname}`, "/");
}

/** The person's home folder: as the variables name it, else as the system knows it. */
export const homeFolder = (): string => namedHome(process.env, process.platform) || homedir();

const namedHome = (env: Record<string, string | undefined>, platform: NodeJS.Platform) =>
  (platform === "win32" ? env.USERPROFILE : env.HOME)?.trim();

function dataFolder(
  env: Record<string, string | undefined>,
  platform: NodeJS.Platform,
  chosen: string | undefined,
): string {
  const { isAbsolute, join, resolve } = platform === "win32" ? win32 : posix;
  const userHome = namedHome(env, platform);
  // Editors and services start us without a shell, so a leading ~ may still be there.
  if (chosen && !/^~(?=$|[/\\])/.test(chosen)) return resolve(chosen);
  if (userHome && isAbsolute(userHome))
    return chosen ? join(userHome, chosen.slice(1)) : join(userHome, ".local", "share", "dragoman");
  refuse("Your home folder is unknown; set DRAGOMAN_HOME to the full path of a folder for dragoman's data.");
}

function refuse(sentence: string): never {
  throw new ProxyError("invalid_request", sentence);
}
