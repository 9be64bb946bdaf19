/** What a service runs, independent of the system's service manager. */
import { type Environment, secretKinds, variables } from "../../config/environment";
import { inHome } from "../../config/home-names";

export interface ServiceDefinition {
  /** The program and all its arguments. */
  command: readonly string[];
  /** The environment variables that the service gets. */
  variables: Readonly<Record<string, string>>;
  /** Seconds until the manager kills a service that it has told to stop. */
  stopSeconds: number;
  /** The data folder. */
  home: string;
  /** The home folder of the person. */
  personHome: string;
}

/** A file that belongs to a service, readable only by its owner. */
export interface ServiceFile {
  path: string;
  content: string;
  /** The content for a terminal, without secrets. */
  shown: string;
}

/** Bun and `lib/net/` read these; the name of a proxy or of a certificate file does not change with the terminal. */
const networkVariables =
  /^(?:(?:https?|all|no)_proxy|NODE_EXTRA_CA_CERTS|SSL_CERT_FILE|NODE_USE_SYSTEM_CA|OTEL_[A-Z_]+)$/i;

/** What is for one run: some tokens and the key of an App, which are never saved, and the limits that tests shorten. */
const { githubToken, billingToken, appId, appInstallation, appRepository, appKey, upstreamTimeoutMs } = variables;
const notKept = new Set<string>(
  [githubToken, billingToken, appId, appInstallation, appRepository, appKey, upstreamTimeoutMs].flatMap(
    ({ names }): readonly string[] => names,
  ),
);
const ownVariables = new Set<string>(
  Object.values(variables)
    .flatMap(({ names }): readonly string[] => names)
    .filter((name) => !notKept.has(name)),
);
const secretVariables = new Set<string>(
  Object.values(variables).flatMap(({ names, kind }) => (secretKinds.has(kind) ? [...names] : [])),
);

/** The variables of this terminal that the service needs too. The data folder is stored as a full path. */
export function serviceVariables(
  env: Readonly<Record<string, string | undefined>>,
  { home }: Environment,
): Record<string, string> {
  const kept = Object.entries(env).flatMap(([name, value = ""]) =>
    value.trim() !== "" && (ownVariables.has(name) || networkVariables.test(name)) ? [[name, value] as const] : [],
  );
  return { ...Object.fromEntries(kept), ...(env.DRAGOMAN_HOME?.trim() ? { DRAGOMAN_HOME: home } : {}) };
}

/** The value for a terminal: secrets are hidden, also the user name and password of a proxy. */
export function shownValue(name: string, value: string): string {
  if (secretVariables.has(name) || /^OTEL_.*HEADERS$/.test(name)) return "[secret]";
  return value.replace(/:\/\/[^/@\s]+@/g, "://[secret]@");
}

/** The log of a service whose manager keeps none. */
export const serviceLogFile = (home: string): string => inHome(home, "serviceLog");
