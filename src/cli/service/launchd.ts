/** An agent of launchd: `man launchd.plist`. It runs while its user is logged in. */
import { join } from "node:path";
import { type ServiceDefinition, type ServiceFile, shownValue } from "./definition";

export const launchdLabel = "dev.dragoman";

export const launchdPath = (personHome: string): string =>
  join(personHome, "Library/LaunchAgents", `${launchdLabel}.plist`);

export function launchdFile(service: ServiceDefinition): ServiceFile {
  const text = (show: (name: string, value: string) => string) => plistText(service, show);
  return { path: launchdPath(service.personHome), content: text((_, value) => value), shown: text(shownValue) };
}

function plistText(
  { command, variables, home, stopSeconds }: ServiceDefinition,
  show: (name: string, value: string) => string,
) {
  const entries = Object.entries(variables);
  const environment = entries.map(([name, value]) => `    ${key(name)}\n    ${string(show(name, value))}\n`).join("");
  return `<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<!-- Written by \`dragoman service install\`; \`dragoman service uninstall\` removes it. -->
<plist version="1.0">
<dict>
  ${key("Label")}
  ${string(launchdLabel)}
  ${key("ProgramArguments")}
  <array>
${command.map((word) => `    ${string(word)}\n`).join("")}  </array>
${entries.length > 0 ? `  ${key("EnvironmentVariables")}\n  <dict>\n${environment}  </dict>\n` : ""}  ${key("WorkingDirectory")}
  ${string(home)}
  ${key("RunAtLoad")}
  <true/>
  ${key("KeepAlive")}
  <dict>
    ${key("SuccessfulExit")}
    <false/>
  </dict>
  ${key("ThrottleInterval")}
  <integer>1</integer>
  ${key("ExitTimeOut")}
  <integer>${stopSeconds}</integer>
  ${key("ProcessType")}
  <string>Interactive</string>
  ${key("Umask")}
  <integer>63</integer>
  ${key("SoftResourceLimits")}
  <dict>
    ${key("NumberOfFiles")}
    <integer>8192</integer>
  </dict>
</dict>
</plist>
`;
}

const key = (name: string) => `<key>${escapeXml(name)}</key>`;
const string = (text: string) => `<string>${escapeXml(text)}</string>`;

const escapeXml = (text: string): string => text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
