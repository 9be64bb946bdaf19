/**
 * A task of the Windows Task Scheduler: https://learn.microsoft.com/windows/win32/taskschd/task-scheduler-schema. It starts
 * at log on, with the rights of the user. A task has no environment of its own: it gets the variables of the user.
 */
import { join } from "node:path";
import type { ServiceDefinition, ServiceFile } from "./definition";
import { escapeXml } from "./launchd";

export const taskName = "dragoman";

/** A copy: the scheduler keeps the task itself. */
export const taskPath = (home: string): string => join(home, "service.xml");

/** `schtasks` expects UTF-16. @param user `COMPUTER\name`. */
export function taskFile({ command, home }: ServiceDefinition, user: string): ServiceFile {
  const text = taskText(command, home, user);
  return { path: taskPath(home), content: Buffer.from(`\ufeff${text}`, "utf16le"), shown: text };
}

/**
 * `conhost --headless` runs a console program without a window. The triggers repeat: each minute the scheduler starts the
 * task if it does not run, whatever its exit code was.
 */
const taskText = (command: readonly string[], home: string, user: string) => `<?xml version="1.0" encoding="UTF-16"?>
<Task version="1.2" xmlns="http://schemas.microsoft.com/windows/2004/02/mit/task">
  <RegistrationInfo>
    <Description>dragoman, a local proxy for GitHub Copilot. Written by dragoman service install.</Description>
  </RegistrationInfo>
  <Triggers>
    <RegistrationTrigger>
      <Repetition>
        <Interval>PT1M</Interval>
      </Repetition>
    </RegistrationTrigger>
    <LogonTrigger>
      <Repetition>
        <Interval>PT1M</Interval>
      </Repetition>
      <UserId>${escapeXml(user)}</UserId>
    </LogonTrigger>
  </Triggers>
  <Principals>
    <Principal id="Author">
      <UserId>${escapeXml(user)}</UserId>
      <LogonType>InteractiveToken</LogonType>
      <RunLevel>LeastPrivilege</RunLevel>
    </Principal>
  </Principals>
  <Settings>
    <MultipleInstancesPolicy>IgnoreNew</MultipleInstancesPolicy>
    <DisallowStartIfOnBatteries>false</DisallowStartIfOnBatteries>
    <StopIfGoingOnBatteries>false</StopIfGoingOnBatteries>
    <StartWhenAvailable>true</StartWhenAvailable>
    <ExecutionTimeLimit>PT0S</ExecutionTimeLimit>
    <Priority>5</Priority>
  </Settings>
  <Actions Context="Author">
    <Exec>
      <Command>conhost.exe</Command>
      <Arguments>${escapeXml(["--headless", ...command].map(quotedArgument).join(" "))}</Arguments>
      <WorkingDirectory>${escapeXml(home)}</WorkingDirectory>
    </Exec>
  </Actions>
</Task>
`;

/** The rules of CommandLineToArgvW: backslashes before a quote count double. */
function quotedArgument(text: string): string {
  if (/^[^\s"]+$/.test(text)) return text;
  return `"${text.replace(/(\\*)"/g, '$1$1\\"').replace(/(\\+)$/, "$1$1")}"`;
}
