/** The program as a person at a terminal meets it: a pseudo-terminal of its own, keys to press, and what is on the screen. */
import { mkdtempSync, rmSync } from "node:fs";
import { join } from "node:path";
import { program } from "./command";
import { quickest } from "./quickest";
import { inherited } from "./short-runs";
import { until } from "./until";

interface AtTerminal extends AsyncDisposable {
  home: string;
  /** Everything it has written, byte for byte. */
  written(): string;
  /** The same without colours and cursor movements. */
  screen(): string;
  type(keys: string): void;
  shows(text: string | RegExp): Promise<void>;
  exited: Promise<number>;
}

/** @param home Where its data is; a folder of its own when missing. */
export function atTerminal(args: string[], env: Record<string, string> = {}, home?: string, columns = 120): AtTerminal {
  const folder = home ?? mkdtempSync(join(quickest(), "dragoman-"));
  const decoder = new TextDecoder();
  let written = "";
  const child = Bun.spawn([...program, ...args], {
    cwd: folder,
    env: { PATH: process.env.PATH ?? "", HOME: folder, TERM: "xterm", ...inherited, ...env },
    terminal: {
      cols: columns,
      rows: 40,
      data(_terminal, bytes) {
        written += decoder.decode(bytes, { stream: true });
      },
    },
  });
  const screen = () => Bun.stripANSI(written).replaceAll("\r\n", "\n");
  return {
    home: folder,
    written: () => written,
    screen,
    type: (keys) => void child.terminal!.write(keys),
    shows: (text) =>
      until(() => (typeof text === "string" ? screen().includes(text) : text.test(screen())), "it is shown").catch(
        () => {
          throw new Error(`It never showed ${text}:\n${screen()}`);
        },
      ),
    exited: child.exited,
    async [Symbol.asyncDispose]() {
      child.kill("SIGKILL");
      await child.exited;
      if (home === undefined) rmSync(folder, { recursive: true, force: true });
    },
  };
}
