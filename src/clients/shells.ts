/** Commands for each shell, with its syntax and quoting. */
import { basename } from "node:path";

export type Shell = keyof typeof shells;

interface Manner {
  /** The display name. */
  name: string;
  set(name: string, value: string): string;
  /** Quotes a text as one word. */
  word(text: string): string;
  /** Continues a command on the next line. */
  more: string;
}

const plain = /^[\w@%+=:,./-]+$/;
const posix = (text: string) => (plain.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`);
const fish = (text: string) => (plain.test(text) ? text : `'${text.replace(/[\\']/g, "\\$&")}'`);
const powershell = (text: string) => `'${text.replaceAll("'", "''")}'`;

/**
 * At cmd's prompt, quoted text is literal, but a `"` ends it and `%NAME%` is still replaced. Without quotes, `^` escapes
 * the next character; between two `%` it makes a name that no variable has.
 */
const setInCmd = (name: string, value: string): string =>
  /["%]/.test(value) ? `set ${name}=${value.replace(/[\^&|<>"%()!]/g, "^$&")}` : `set "${name}=${value}"`;

export const shells = {
  bash: { name: "bash, zsh", set: (name, value) => `export ${name}=${posix(value)}`, word: posix, more: "\\" },
  fish: { name: "fish", set: (name, value) => `set -gx ${name} ${fish(value)}`, word: fish, more: "\\" },
  powershell: {
    name: "PowerShell",
    set: (name, value) => `$env:${name} = ${powershell(value)}`,
    word: powershell,
    more: "`",
  },
  cmd: { name: "cmd", set: setInCmd, word: (text) => `"${text}"`, more: "^" },
} satisfies Record<string, Manner>;

export const shellNames = Object.keys(shells) as Shell[];

export const isShell = (text: string): text is Shell => Object.hasOwn(shells, text);

/** The shell that the person most likely uses. */
export function usualShell(
  env: Record<string, string | undefined>,
  platform: NodeJS.Platform = process.platform,
): Shell {
  const named = basename(env.SHELL ?? "").replace(/\.exe$/i, "");
  if (named === "fish") return "fish";
  if (named === "pwsh") return "powershell";
  return platform === "win32" && named === "" ? "powershell" : "bash";
}

export const setVariables = (variables: Record<string, string>, shell: Shell): string =>
  Object.entries(variables)
    .map(([name, value]) => shells[shell].set(name, value))
    .join("\n");
