/** Copies text to the clipboard, if there is one. A failure is ignored: the text is printed as well. */

/** A program of the desktop, and where it can be used. */
export interface DesktopCommand {
  when(env: NodeJS.ProcessEnv): boolean;
  command: [program: string, ...args: string[]];
}

export const isWindows = (): boolean => process.platform === "win32";
export const isWindowsOrWsl = (env: NodeJS.ProcessEnv): boolean => isWindows() || Boolean(env.WSL_DISTRO_NAME);

/** The first one that is installed gets the text on its stdin. */
const clipboards: DesktopCommand[] = [
  { when: () => process.platform === "darwin", command: ["pbcopy"] },
  { when: isWindowsOrWsl, command: ["clip.exe"] },
  { when: ({ WAYLAND_DISPLAY }) => Boolean(WAYLAND_DISPLAY), command: ["wl-copy"] },
  { when: ({ DISPLAY }) => Boolean(DISPLAY), command: ["xclip", "-selection", "clipboard"] },
];

/** @returns Whether it was copied. */
export function copyToClipboard(text: string, env: NodeJS.ProcessEnv = process.env): boolean {
  const command = findCommand(clipboards, env);
  if (!command) return false;
  try {
    // xclip and wl-copy stay in the background to serve the clipboard; they must not hold our streams open.
    return Bun.spawnSync(command, { stdin: Buffer.from(text), stdout: "ignore", stderr: "ignore", timeout: 2000 })
      .success;
  } catch {
    return false;
  }
}

export const findCommand = (commands: DesktopCommand[], env: NodeJS.ProcessEnv): string[] | undefined =>
  commands.find(({ when, command }) => when(env) && Bun.which(command[0], { PATH: env.PATH }) !== null)?.command;
