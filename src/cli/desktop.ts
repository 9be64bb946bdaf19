/** The person's clipboard and browser: a courtesy where they are at hand, never a reason to fail. */

interface Helper {
  when(env: Env): boolean;
  command: string[];
}

type Env = Record<string, string | undefined>;

const mac = () => process.platform === "darwin";
const windows = () => process.platform === "win32";
const windowsBeneath = (env: Env) => windows() || Boolean(env.WSL_DISTRO_NAME);
const wayland = (env: Env) => Boolean(env.WAYLAND_DISPLAY);
const screen = (env: Env) => wayland(env) || Boolean(env.DISPLAY);

/** Each reads the text from its stdin; the first that is there is used. */
const clipboards: Helper[] = [
  { when: mac, command: ["pbcopy"] },
  { when: windowsBeneath, command: ["clip.exe"] },
  { when: wayland, command: ["wl-copy"] },
  { when: ({ DISPLAY }) => Boolean(DISPLAY), command: ["xclip", "-selection", "clipboard"] },
];

/** Each is given the address. Without a screen a browser would open inside the terminal, or not at all. */
const browsers: Helper[] = [
  { when: mac, command: ["open"] },
  { when: windows, command: ["rundll32", "url.dll,FileProtocolHandler"] },
  { when: windowsBeneath, command: ["wslview"] },
  { when: windowsBeneath, command: ["explorer.exe"] },
  { when: screen, command: ["xdg-open"] },
];

/** @returns Whether it was copied. */
export function copyToClipboard(text: string, env: Env = process.env): boolean {
  const command = present(clipboards, env);
  if (!command) return false;
  try {
    // What stays to serve the clipboard must not keep our streams.
    return Bun.spawnSync(command, { stdin: Buffer.from(text), stdout: "ignore", stderr: "ignore", timeout: 2000 })
      .success;
  } catch {
    return false;
  }
}

/** @returns Whether a browser was asked to show it: not over SSH, not in CI, not without a screen. */
export function openBrowser(address: string, env: Env = process.env): boolean {
  if (env.SSH_CONNECTION || env.SSH_TTY || env.CI) return false;
  const command = present(browsers, env);
  if (!command) return false;
  try {
    Bun.spawn([...command, address], { stdin: "ignore", stdout: "ignore", stderr: "ignore" }).unref();
    return true;
  } catch {
    return false;
  }
}

const present = (helpers: Helper[], env: Env): string[] | undefined =>
  helpers.find(({ when, command }) => when(env) && Bun.which(command[0]!, { PATH: env.PATH }) !== null)?.command;
