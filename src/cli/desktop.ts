/** The browser and the clipboard of a desktop, if there is one. A failure is ignored: what they would get is printed as well. */

/** A program of the desktop, and where it can be used. */
interface DesktopCommand {
  when(env: NodeJS.ProcessEnv): boolean;
  command: [program: string, ...args: string[]];
}

const isMac = (): boolean => process.platform === "darwin";
const isWindows = (): boolean => process.platform === "win32";
const isWindowsOrWsl = (env: NodeJS.ProcessEnv): boolean => isWindows() || Boolean(env.WSL_DISTRO_NAME);
const hasScreen = (env: NodeJS.ProcessEnv) => Boolean(env.WAYLAND_DISPLAY || env.DISPLAY);

/** The first one that is installed gets the text on its stdin. */
const clipboards: DesktopCommand[] = [
  { when: isMac, command: ["pbcopy"] },
  { when: isWindowsOrWsl, command: ["clip.exe"] },
  { when: ({ WAYLAND_DISPLAY }) => Boolean(WAYLAND_DISPLAY), command: ["wl-copy"] },
  { when: ({ DISPLAY }) => Boolean(DISPLAY), command: ["xclip", "-selection", "clipboard"] },
];

/** The first one that is installed is run with the address. Without a screen, a browser would open inside the terminal. */
const browsers: DesktopCommand[] = [
  { when: isMac, command: ["open"] },
  { when: isWindows, command: ["rundll32", "url.dll,FileProtocolHandler"] },
  { when: isWindowsOrWsl, command: ["wslview"] },
  { when: isWindowsOrWsl, command: ["explorer.exe"] },
  { when: hasScreen, command: ["xdg-open"] },
];

/** @returns Whether it was copied. */
export const copyToClipboard = (text: string): boolean =>
  withFirst(clipboards, (command) => {
    // xclip and wl-copy stay in the background to serve the clipboard; they must not hold our streams open.
    const options = { ...silent, stdin: Buffer.from(text), env: process.env, timeout: 2000 };
    return Bun.spawnSync(command, options).success;
  });

/** @returns Whether a browser was started: never over SSH, in CI or without a screen. */
export function openBrowser(address: string): boolean {
  const { SSH_CONNECTION, SSH_TTY, CI } = process.env;
  if (SSH_CONNECTION || SSH_TTY || CI) return false;
  return withFirst(browsers, (command) => {
    Bun.spawn([...command, address], { ...silent, stdin: "ignore", env: process.env }).unref();
    return true;
  });
}

const silent = { stdout: "ignore", stderr: "ignore" } as const;

function withFirst(commands: DesktopCommand[], run: (command: string[]) => boolean): boolean {
  const { env } = process;
  const found = commands.find(({ when, command }) => when(env) && Bun.which(command[0], { PATH: env.PATH }) !== null);
  try {
    return found !== undefined && run(found.command);
  } catch {
    return false;
  }
}
