/** Opens a page in the browser, if there is one. A failure is ignored: the address is printed as well. */
import { type DesktopCommand, findCommand, isWindows, isWindowsOrWsl } from "./clipboard";

const hasScreen = (env: NodeJS.ProcessEnv) => Boolean(env.WAYLAND_DISPLAY || env.DISPLAY);

/** The first one that is installed is run with the address. Without a screen, a browser would open inside the terminal. */
const browsers: DesktopCommand[] = [
  { when: () => process.platform === "darwin", command: ["open"] },
  { when: isWindows, command: ["rundll32", "url.dll,FileProtocolHandler"] },
  { when: isWindowsOrWsl, command: ["wslview"] },
  { when: isWindowsOrWsl, command: ["explorer.exe"] },
  { when: hasScreen, command: ["xdg-open"] },
];

/** @returns Whether a browser was started: never over SSH, in CI or without a screen. */
export function openBrowser(address: string, env: NodeJS.ProcessEnv = process.env): boolean {
  if (env.SSH_CONNECTION || env.SSH_TTY || env.CI) return false;
  const command = findCommand(browsers, env);
  if (!command) return false;
  try {
    const child = { stdin: "ignore", stdout: "ignore", stderr: "ignore", env: process.env } as const;
    Bun.spawn([...command, address], child).unref();
    return true;
  } catch {
    return false;
  }
}
