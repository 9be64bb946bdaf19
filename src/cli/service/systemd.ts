/** A user service of systemd: `man systemd.service`, `man systemd.exec`. */
import { dirname, join } from "node:path";
import { followLink } from "../../config/files";
import { inHome } from "../../config/home-names";
import { type ServiceDefinition, type ServiceFile, shownValue } from "./definition";

export const systemdUnit = "dragoman.service";

interface SystemdPlaces {
  /** The folder of the person's units. */
  units: string;
  /** The variables, which may be secrets; a unit's own are shown by `systemctl show`. */
  variables: string;
}

export function systemdPlaces(
  { personHome, home }: Pick<ServiceDefinition, "personHome" | "home">,
  env: Readonly<Record<string, string | undefined>>,
): SystemdPlaces {
  const config = env.XDG_CONFIG_HOME?.startsWith("/") ? env.XDG_CONFIG_HOME : join(personHome, ".config");
  return { units: join(config, "systemd/user"), variables: inHome(home, "serviceVariables") };
}

/**
 * Directives that need no rights: they are filters on system calls. The just-in-time compiler needs memory that is written
 * and executed, so MemoryDenyWriteExecute is not among them. Netlink answers which addresses this machine has.
 */
const filters = [
  "NoNewPrivileges=yes",
  "KeyringMode=private",
  "RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX AF_NETLINK",
  "RestrictNamespaces=yes",
  "RestrictRealtime=yes",
  "RestrictSUIDSGID=yes",
  "LockPersonality=yes",
  "SystemCallArchitectures=native",
  "SystemCallFilter=@system-service",
  "SystemCallFilter=~@privileged @resources",
  "SystemCallErrorNumber=EPERM",
];

/** Directives that need a namespace of users: for an own view of the file system, and to give up capabilities. */
const namespaced = (service: ServiceDefinition) => [
  "PrivateUsers=yes",
  "CapabilityBoundingSet=",
  "ProtectSystem=strict",
  "ProtectHome=read-only",
  `ReadWritePaths=${writableFolders(service).map(quotedPath).join(" ")}`,
  ...(usesTemporaryFolder(service) ? [] : ["PrivateTmp=yes"]),
  "PrivateDevices=yes",
  "ProtectClock=yes",
  "ProtectControlGroups=yes",
  "ProtectHostname=yes",
  "ProtectKernelLogs=yes",
  "ProtectKernelModules=yes",
  "ProtectKernelTunables=yes",
  "ProtectProc=invisible",
];

/** The data folder, and that of the config if it is a link. */
const writableFolders = ({ home }: ServiceDefinition) => [
  ...new Set([home, dirname(followLink(inHome(home, "config")))]),
];

/** Whether the program or its data would be hidden by a private /tmp. */
const usesTemporaryFolder = (service: ServiceDefinition) =>
  [...service.command, ...writableFolders(service)].some((path) => /^\/(?:var\/)?tmp\//.test(path));

/** What a manager must be able to do for them; tried with `systemd-run`. */
export const namespaceTrial: readonly string[] = [
  ...["systemd-run", "--user", "--quiet", "--collect", "--wait", "--service-type=exec"],
  ...[
    "-p",
    "PrivateUsers=yes",
    "-p",
    "ProtectSystem=strict",
    "-p",
    "PrivateDevices=yes",
    "-p",
    "ProtectProc=invisible",
  ],
  "true",
];

/** @param namespaces Whether the manager gives a service its own view of the file system. */
export function systemdFiles(
  service: ServiceDefinition,
  { units, variables }: SystemdPlaces,
  namespaces: boolean,
): ServiceFile[] {
  const unit = unitText(service, variables, namespaces);
  const entries = Object.entries(service.variables);
  const lines = (show: (name: string, value: string) => string) =>
    entries.map(([name, value]) => `${name}=${quotedValue(show(name, value))}\n`).join("");
  const variablesFile = { path: variables, content: lines((_, value) => value), shown: lines(shownValue) };
  return [
    { path: join(units, systemdUnit), content: unit, shown: unit },
    ...(entries.length > 0 ? [variablesFile] : []),
  ];
}

function unitText(service: ServiceDefinition, variables: string, namespaces: boolean): string {
  const [program = "", ...args] = service.command;
  return `# Written by \`dragoman service install\`; \`dragoman service uninstall\` removes it.
[Unit]
Description=dragoman, a local proxy for GitHub Copilot
# A port that is taken for minutes is no reason to give up.
StartLimitIntervalSec=0

[Service]
Type=exec
ExecStart=${[quotedWord(program), ...args.map((word) => quotedWord(word.replaceAll("$", "$$$$")))].join(" ")}
${Object.keys(service.variables).length > 0 ? `EnvironmentFile=${variables.replaceAll("%", "%%")}\n` : ""}\
# After a crash it starts again; after an error in its own options it does not.
Restart=always
RestartSec=500ms
RestartPreventExitStatus=2
# Running answers may end first.
KillMode=mixed
TimeoutStopSec=${service.stopSeconds}
LimitNOFILE=65536
UMask=0077

${filters.join("\n")}
${namespaces ? `\n${namespaced(service).join("\n")}\n` : ""}
[Install]
WantedBy=default.target
`;
}

/** Quoted, with `%` as it is, not as a specifier. */
const quotedWord = (text: string) => `"${text.replace(/[\\"]/g, "\\$&").replaceAll("%", "%%")}"`;
const quotedPath = (path: string) => (/^[\w/.-]+$/.test(path) ? path : quotedWord(path));

/** For a file of variables, which has no specifiers. */
const quotedValue = (text: string) => `"${text.replace(/[\\"$`]/g, "\\$&")}"`;
