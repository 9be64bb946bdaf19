/** The addresses of GitHub and Copilot, for github.com and for tenants of ghe.com, and the apps to sign in with. */
import type { Environment } from "../../config/environment";
import { ProxyError } from "../../lib/errors";
import { entryOf } from "../../lib/json";
import { isLoopbackUrl } from "../../lib/net/address";
import { withoutEnd } from "../../lib/without-end";

/** How a GitHub token becomes a bearer token for the model host: exchanged for a Copilot token, or used directly. */
export type Mode = "exchange" | "direct";

export interface Hosts {
  /** `github.com` or the tenant's domain. It names the folder of the saved accounts, even if the addresses below are overridden. */
  name: string;
  /** Sign-in in the browser. */
  web: string;
  /** REST API: login, token exchange, quota. */
  api: string;
  /** The model host, unless {@link copilotOverride} or a token names one. */
  copilot: string;
  /** The model host the owner configured; it has the highest precedence. */
  copilotOverride?: string;
}

/** Validated addresses from the environment; each replaces the derived one. */
type HostOverrides = Pick<Environment, "githubUrl" | "githubApiUrl" | "copilotApiUrl">;

/** @param name A checked host name: `github.com` (also when missing) or a tenant such as `company.ghe.com`. */
export function hostsFor(name = "github.com", overrides: HostOverrides = {}): Hosts {
  const derived =
    name === "github.com"
      ? { web: "https://github.com", api: "https://api.github.com", copilot: "https://api.githubcopilot.com" }
      : { web: `https://${name}`, api: `https://api.${name}`, copilot: `https://copilot-api.${name}` };
  const api = overrides.githubApiUrl ?? derived.api;
  return {
    name,
    web: overrides.githubUrl ?? derived.web,
    api,
    // If GitHub is on this machine (the demo, tests), nothing may reach the real model host.
    copilot: isLoopbackUrl(api) ? api : derived.copilot,
    copilotOverride: overrides.copilotApiUrl,
  };
}

/**
 * The model host that a token or the quota endpoint names, if a Copilot token may be sent there: https on Copilot's domain
 * or below the tenant's; loopback only if GitHub itself is loopback (the demo, tests).
 */
export function allowedModelHost(stated: string, hosts: Hosts): string | undefined {
  if (!URL.canParse(stated)) return undefined;
  const { protocol, hostname, username, password, search, hash } = new URL(stated);
  if (username || password || search || hash) return undefined;
  const domains = hosts.name === "github.com" ? ["githubcopilot.com"] : ["githubcopilot.com", hosts.name];
  const trusted = protocol === "https:" && domains.some((domain) => hostname.endsWith(`.${domain}`));
  const local = isLoopbackUrl(hosts.api) && isLoopbackUrl(stated) && /^https?:$/.test(protocol);
  return trusted || local ? withoutEnd(stated, "/") : undefined;
}

export interface SignInApp {
  /** As saved with the account: a name of {@link signInApps}, or the client id itself. */
  name: string;
  clientId: string;
  mode: Mode;
}

/** Tokens of a GitHub App can be exchanged. opencode is an OAuth App: the model host accepts its token directly. */
export const signInApps = {
  vscode: { name: "vscode", clientId: "Iv1.b507a08c87ecfe98", mode: "exchange" },
  opencode: { name: "opencode", clientId: "Ov23li8tweQw6odWQebz", mode: "direct" },
} as const satisfies Record<string, SignInApp>;

/**
 * A named app, or any other client id: an exchange of its tokens is tried, and they are used directly if GitHub declines.
 * @param hostName Where it is to sign in; github.com when missing.
 * @throws ProxyError `invalid_request`, also for an app that the host does not know
 */
export function signInApp(choice = "vscode", hostName = "github.com"): SignInApp {
  const { opencode } = signInApps;
  // Instances of ghe.com know GitHub's own apps, and those that were made there (oh-my-pi, 2026-09).
  if ((choice === opencode.name || choice === opencode.clientId) && hostName.endsWith(".ghe.com"))
    throw new ProxyError(
      "invalid_request",
      `${hostName} does not know the app opencode, which exists at github.com only. Sign in with the usual app, ${signInApps.vscode.name}, or with one that was made at ${hostName}.`,
    );
  if (Object.hasOwn(signInApps, choice)) return signInApps[choice as keyof typeof signInApps];
  if (!/^[A-Za-z0-9._-]{4,64}$/.test(choice))
    throw new ProxyError(
      "invalid_request",
      `"${choice.slice(0, 80)}" is not a sign-in app: use ${Object.keys(signInApps).join(", ")} or the client id of an app of your own.`,
    );
  return { name: choice, clientId: choice, mode: "exchange" };
}

interface Revoked {
  app: string;
  host: string;
  login: string;
  installation?: { id: string };
}

/**
 * The page where a person revokes the sign-in app, or an owner of the organization the installation of one. GitHub lists GitHub Apps and OAuth apps on two pages ("Reviewing your
 * authorized integrations" of GitHub Docs); client ids of GitHub Apps begin with `Iv`.
 * @param account As it is saved.
 */
export function revocationPage({ app, host, login, installation }: Revoked): string {
  if (installation) return `https://${host}/organizations/${login}/settings/installations/${installation.id}`;
  const named: SignInApp | undefined = Object.values(signInApps).find(({ name }) => name === app);
  const githubApp = (named?.clientId ?? app).startsWith("Iv");
  return `https://${host}/settings/${githubApp ? "apps/authorizations" : "applications"}`;
}

/** GitHub's page does not name dragoman, so the person is told in advance. */
export const consentNotice = ({ name, clientId }: SignInApp): string =>
  entryOf(consentNotices, name) ?? `GitHub's page will name the app ${clientId}.`;

const consentNotices: Record<string, string> = {
  vscode:
    "GitHub's page will show “GitHub Copilot Plugin”, not dragoman, because dragoman signs in with the app of GitHub's editor plugins. GitHub lets other clients do so, and has not said that they may.",
  opencode:
    "GitHub's page will name opencode, not dragoman, because dragoman signs in with that app. GitHub lets other clients use a plan, and has not said that they may.",
};

/** What GitHub's terms say about several accounts. */
export const ownAccountsOnly =
  "Use only your own accounts, each with its own Copilot plan: GitHub's terms do not allow shared accounts, and allow one free account per person.";
